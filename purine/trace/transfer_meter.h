// How much of the time in which data moves between ranks is hidden by operators that run meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "purine/runtime/device.h"
#include "purine/runtime/endpoint.h"

namespace purine::trace {

/// What a rank exchanged with the others. Times are nanoseconds.
struct TransferUsage {
  std::int64_t time = 0;        ///< that was measured
  std::int64_t computing = 0;   ///< of it, while any operator ran
  std::int64_t busy = 0;        ///< while any message was on its way, out or in
  std::int64_t overlapped = 0;  ///< of this, while an operator ran
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;

  std::int64_t exposed() const { return busy - overlapped; }
  /// 1 if nothing moved.
  double overlapped_share() const {
    return busy > 0 ? static_cast<double>(overlapped) / static_cast<double>(busy) : 1;
  }

  TransferUsage& operator+=(const TransferUsage& other);
  /// What has come since an earlier moment of the same measurement.
  TransferUsage since(const TransferUsage& earlier) const;
  bool operator==(const TransferUsage& other) const = default;
};

/// Measures it as it happens: the unions of the times of operators and of messages, and of what they have in
/// common, in a sweep over their begins and ends. It keeps a few numbers, however long a run takes. Any
/// thread may call its methods at any time.
class TransferMeter final : public TransferObserver {
 public:
  /// The clock must outlive it; without one it has the machine's monotonic clock.
  explicit TransferMeter(const Clock* clock = nullptr);

  /// Lives while a part of an operator runs. Does nothing without a meter.
  class Computing {
   public:
    explicit Computing(TransferMeter* meter) : meter_(meter) {
      if (meter_ != nullptr) meter_->operator_begins();
    }
    Computing(const Computing&) = delete;
    Computing& operator=(const Computing&) = delete;
    ~Computing() {
      if (meter_ != nullptr) meter_->operator_ends();
    }

   private:
    TransferMeter* meter_;
  };

  void message_begins(bool sends) override;
  void message_ends(bool sends, std::size_t bytes) override;

  /// Since it was made, or last reset, until now. Messages count when they end.
  TransferUsage usage() const;
  /// Begins anew; what runs and moves now goes on.
  void reset();

 private:
  void operator_begins();
  void operator_ends();
  /// Under mutex_: accounts for the time since the last change.
  void advance() const;

  const SteadyClock steady_clock_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  mutable TransferUsage usage_;
  mutable std::int64_t now_;
  int operators_ = 0;  // that run
  int messages_ = 0;   // that move
};

}  // namespace purine::trace
