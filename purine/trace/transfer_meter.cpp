#include "purine/trace/transfer_meter.h"

#include <algorithm>

namespace purine::trace {

TransferUsage& TransferUsage::operator+=(const TransferUsage& other) {
  time += other.time;
  computing += other.computing;
  busy += other.busy;
  overlapped += other.overlapped;
  messages_sent += other.messages_sent;
  messages_received += other.messages_received;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  return *this;
}

TransferUsage TransferUsage::since(const TransferUsage& earlier) const {
  TransferUsage usage = *this;
  usage.time -= earlier.time;
  usage.computing -= earlier.computing;
  usage.busy -= earlier.busy;
  usage.overlapped -= earlier.overlapped;
  usage.messages_sent -= earlier.messages_sent;
  usage.messages_received -= earlier.messages_received;
  usage.bytes_sent -= earlier.bytes_sent;
  usage.bytes_received -= earlier.bytes_received;
  return usage;
}

TransferMeter::TransferMeter(const Clock* clock)
    : clock_(clock != nullptr ? *clock : steady_clock_), now_(clock_.now()) {}

void TransferMeter::advance() const {
  const std::int64_t now = std::max(now_, clock_.now());
  const std::int64_t passed = now - now_;
  now_ = now;
  usage_.time += passed;
  if (operators_ > 0) usage_.computing += passed;
  if (messages_ > 0) usage_.busy += passed;
  if (operators_ > 0 && messages_ > 0) usage_.overlapped += passed;
}

void TransferMeter::operator_begins() {
  const std::lock_guard lock(mutex_);
  advance();
  ++operators_;
}

void TransferMeter::operator_ends() {
  const std::lock_guard lock(mutex_);
  advance();
  --operators_;
}

void TransferMeter::message_begins(bool /*sends*/) {
  const std::lock_guard lock(mutex_);
  advance();
  ++messages_;
}

void TransferMeter::message_ends(bool sends, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  advance();
  --messages_;
  ++(sends ? usage_.messages_sent : usage_.messages_received);
  (sends ? usage_.bytes_sent : usage_.bytes_received) += static_cast<std::int64_t>(bytes);
}

TransferUsage TransferMeter::usage() const {
  const std::lock_guard lock(mutex_);
  advance();
  return usage_;
}

void TransferMeter::reset() {
  const std::lock_guard lock(mutex_);
  advance();
  usage_ = {};
}

}  // namespace purine::trace
