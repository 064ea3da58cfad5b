#include "purine/io/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "purine/core/error.h"
#include "purine/io/crc32c.h"

namespace purine::io {
namespace {

constexpr std::size_t largest_held = 65536;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <typename T>
std::string_view raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// A message in protobuf's wire format (https://protobuf.dev/programming-guides/encoding). Fields with the
/// default value are left out, as protobuf's own encoders do.
class Message {
 public:
  void add_integer(unsigned field, std::int64_t value) {
    if (value == 0) return;
    add_varint(field << 3);
    add_varint(static_cast<std::uint64_t>(value));
  }
  void add_double(unsigned field, double value) {
    if (std::bit_cast<std::uint64_t>(value) == 0) return;
    add_varint(field << 3 | 1U);
    bytes_ += raw(value);
  }
  /// A float that is written whatever its value is: one of a `oneof`, whose presence says which it is.
  void add_chosen_float(unsigned field, float value) {
    add_varint(field << 3 | 5U);
    bytes_ += raw(value);
  }
  void add_text(unsigned field, std::string_view value) {
    add_varint(field << 3 | 2U);
    add_varint(value.size());
    bytes_ += value;
  }
  void add_message(unsigned field, const Message& value) { add_text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Numbers of fields: of Event, Summary, Summary.Value and SessionLog.
constexpr unsigned event_wall_time = 1;
constexpr unsigned event_step = 2;
constexpr unsigned event_file_version = 3;
constexpr unsigned event_summary = 5;
constexpr unsigned event_session_log = 7;
constexpr unsigned summary_value = 1;
constexpr unsigned value_tag = 1;
constexpr unsigned value_simple_value = 2;
constexpr unsigned session_log_status = 1;
constexpr std::int64_t session_start = 1;

/// TensorFlow's mask: the CRC of bytes that hold a CRC would be weak.
std::uint32_t masked_checksum(std::string_view bytes) {
  const std::uint32_t checksum = crc32c(bytes_of(bytes));
  return std::rotr(checksum, 15) + 0xa282ead8U;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

File make_file(const std::filesystem::path& folder, double time) {
  make_folder(folder);
  for (int number = 0;; ++number) {
    File file = File::create_new(folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                                                      static_cast<std::int64_t>(time), host_name(),
                                                      ::getpid(), number));
    if (file.is_open()) return file;
  }
}

}  // namespace

EventFileWriter::EventFileWriter(const std::filesystem::path& folder, const EventFileOptions& options) {
  const double time = options.time.value_or(seconds_now());
  file_ = RecordFile(make_file(folder, time));
  Message first;
  first.add_double(event_wall_time, time);
  first.add_text(event_file_version, "brain.Event:2");
  add_record(first.bytes());
  if (options.resumed_step) {
    Message session_log;
    session_log.add_integer(session_log_status, session_start);
    Message start;
    start.add_double(event_wall_time, time);
    start.add_integer(event_step, *options.resumed_step);
    start.add_message(event_session_log, session_log);
    add_record(start.bytes());
  }
  flush();
}

EventFileWriter::~EventFileWriter() {
  if (!file_.is_open()) return;
  try {
    flush();
  } catch (const Error&) {
    return;  // a destructor has nobody to tell
  }
}

void EventFileWriter::write(std::int64_t step, std::span<const Scalar> scalars, std::optional<double> time) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    Message value;
    value.add_text(value_tag, scalar.tag);
    value.add_chosen_float(value_simple_value, scalar.value);
    summary.add_message(summary_value, value);
  }
  Message event;
  event.add_double(event_wall_time, time.value_or(seconds_now()));
  event.add_integer(event_step, step);
  event.add_message(event_summary, summary);
  add_record(event.bytes());
  if (file_.held() >= largest_held) flush();
}

void EventFileWriter::add_record(std::string_view event) {
  const auto length = static_cast<std::uint64_t>(event.size());
  file_.add(raw(length));
  file_.add(raw(masked_checksum(raw(length))));
  file_.add(event);
  file_.add(raw(masked_checksum(event)));
}

}  // namespace purine::io
