#include "purine/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "purine/core/error.h"

namespace purine::data {
namespace {

[[noreturn]] void fail() {
  throw Error("file", "can't be read: " + std::string(std::strerror(errno)));
}

// A regular file that is open: opening a pipe would wait for its writer.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) fail();
    if (::fstat(value_, &status_) == 0 && S_ISREG(status_.st_mode)) return;
    ::close(value_);
    throw Error("file", "is not a regular file");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int value() const { return value_; }
  std::size_t size() const { return static_cast<std::size_t>(status_.st_size); }
  // Whoever calls this closes it.
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
  struct stat status_ {};
};

}  // namespace

void read_file(const std::string& path, std::vector<std::byte>& bytes) {
  const Descriptor file(path);
  bytes.resize(file.size());
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.value(), bytes.data() + done, bytes.size() - done);
    if (count < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::byte> bytes;
  try {
    read_file(path, bytes);
  } catch (const Error& error) {
    throw error.at(path);
  }
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.remove_suffix(1);
    }
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

InflatingReader::InflatingReader(const std::string& path) {
  Descriptor descriptor(path);
  const gzFile file = gzdopen(descriptor.value(), "rb");
  if (file == nullptr) throw std::bad_alloc();
  descriptor.release();
  gzbuffer(file, 1U << 17);
  file_ = file;
}

void InflatingReader::expect_end() {
  std::array<std::uint8_t, 1> further{};
  if (read(further) != 0) throw Error("file", "is longer than expected");
  int code = Z_OK;
  gzerror(static_cast<gzFile>(file_), &code);
  if (code == Z_BUF_ERROR) throw Error("file", "is cut short: the end of its gzip data is missing");
}

InflatingReader::~InflatingReader() {
  gzclose(static_cast<gzFile>(file_));
}

std::size_t InflatingReader::read(std::span<std::uint8_t> bytes) {
  const gzFile file = static_cast<gzFile>(file_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t wanted = std::min(bytes.size() - done, std::size_t{1} << 30);
    const int count = gzread(file, bytes.data() + done, static_cast<unsigned>(wanted));
    if (count < 0) {
      int code = Z_OK;
      std::string message = gzerror(file, &code);
      if (code == Z_BUF_ERROR) break;
      if (code == Z_ERRNO) fail();
      // zlib names the file by its descriptor.
      if (message.starts_with("<fd:")) message.erase(0, std::min(message.find(": ") + 2, message.size()));
      throw Error("file", "damaged gzip data: " + message);
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace purine::data
