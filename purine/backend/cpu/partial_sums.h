// Sums that several parts of an execution make together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "purine/program/kernel.h"

namespace purine::cpu {

/// Each part sums some of the terms: the first in the operator's outputs, the others in memory of the kernel.
/// Whichever ends last adds them up, always in the same order.
class PartialSums {
 public:
  /// `elements` are those of each output.
  PartialSums(std::vector<std::int64_t> elements, int parts) : elements_(std::move(elements)), parts_(parts) {
    for (const std::int64_t of_output : elements_) part_elements_ += aligned(of_output);
    const std::int64_t bytes = part_elements_ * (parts - 1) * static_cast<std::int64_t>(sizeof(float));
    if (bytes > 0)
      partials_.reset(static_cast<float*>(::operator new(static_cast<std::size_t>(bytes), alignment)));
  }

  int parts() const { return parts_; }
  /// Where a part but the first leaves its sums of an output, aligned to 64 bytes.
  float* place(int part, std::size_t output) const {
    float* place = partials_.get() + part_elements_ * (part - 1);
    for (std::size_t i = 0; i < output; ++i) place += aligned(elements_[i]);
    return place;
  }

  /// Calls `sum`, a part's work, and adds all up after the last part of an execution.
  template <typename Sum>
  void run(const KernelCall& call, Sum sum) {
    try {
      sum();
    } catch (...) {
      arrive();
      throw;
    }
    if (arrive()) add_up(call);
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, alignment); }
  };
  static std::int64_t aligned(std::int64_t elements) { return (elements + 15) / 16 * 16; }

  /// True for the last part of an execution.
  bool arrive() {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts_) return false;
    arrived_.store(0, std::memory_order_relaxed);
    return true;
  }
  void add_up(const KernelCall& call) const {
    for (int part = 1; part < parts_; ++part) {
      for (std::size_t output = 0; output < elements_.size(); ++output) {
        float* sum = call.output<float>(static_cast<int>(output));
        const float* partial = place(part, output);
        for (std::int64_t i = 0; i < elements_[output]; ++i) sum[i] += partial[i];
      }
    }
  }

  std::vector<std::int64_t> elements_;
  int parts_;
  std::int64_t part_elements_ = 0;
  std::unique_ptr<float, Free> partials_;
  std::atomic<int> arrived_ = 0;
};

}  // namespace purine::cpu
