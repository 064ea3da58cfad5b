// What the benchmarks of operators share: one operator with its kernel and memory, and its time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/graph/contract.h"
#include "purine/program/kernel.h"

namespace purine::bench {

/// What to measure and how long.
struct Settings {
  KernelRegistry kernels;
  std::int64_t batch = 32;
  double budget = 0.2;  ///< seconds a measurement
  std::string only;     ///< lines without this text are left out

  bool includes(std::string_view line) const { return line.find(only) != std::string_view::npos; }
};

inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline double seconds_at_best(double budget, const std::function<void()>& run) {
  run();
  double best = 1e9;
  double total = 0;
  for (int repetitions = 0; repetitions < 3 || total < budget; ++repetitions) {
    const double start = processor_seconds();
    run();
    const double seconds = processor_seconds() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

/// Median seconds of several functions that run in turn, so that what slows the machine for a while slows
/// all.
inline std::vector<double> seconds_in_turn(double budget,
                                           const std::vector<std::function<void()>>& functions) {
  std::vector<std::vector<double>> samples(functions.size());
  for (const auto& function : functions) function();
  const double start = processor_seconds();
  const double end = start + budget * static_cast<double>(functions.size());
  for (int round = 0; round < 5 || processor_seconds() < end; ++round) {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const double begin = processor_seconds();
      functions[i]();
      samples[i].push_back(processor_seconds() - begin);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& times : samples) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    medians.push_back(*middle);
  }
  return medians;
}

struct Free {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

inline Buffer make_buffer(std::size_t bytes) {
  Buffer buffer(
      static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64})));
  std::fill_n(buffer.get(), bytes, std::byte{0});
  return buffer;
}

/// One operator with its kernel and memory. Floating values lie in [-0.5, 0.5], indices are 0.
class Runner {
 public:
  Runner(const KernelRegistry& kernels, const ContractPtr& contract, std::vector<TensorInfo> inputs,
         Layout layout)
      : inputs_(std::move(inputs)), outputs_(contract->infer(inputs_)) {
    const LayoutRule rule = contract->layouts();
    const std::vector<Layout> input_layouts = layouts(inputs_, rule.inputs, layout);
    const std::vector<Layout> output_layouts = layouts(outputs_, rule.outputs, layout);
    kernel_ = kernels.bind({*contract, inputs_, outputs_, input_layouts, output_layouts, 1, 1, "bench"});
    cost_ = contract->cost(inputs_, outputs_);
    for (const TensorInfo& info : inputs_) {
      buffers_.push_back(make_buffer(info.bytes()));
      input_pointers_.push_back(buffers_.back().get());
      if (info.dtype == DType::f32)
        fill(reinterpret_cast<float*>(buffers_.back().get()), info.shape.elements());
    }
    for (const TensorInfo& info : outputs_) {
      buffers_.push_back(make_buffer(info.bytes()));
      output_pointers_.push_back(buffers_.back().get());
    }
    scratch_ = make_buffer(kernel_->scratch_bytes());
  }

  double operations() const { return cost_.operations; }
  double bytes() const { return cost_.bytes; }
  void run() {
    KernelCall call;
    call.inputs = input_pointers_;
    call.outputs = output_pointers_;
    call.scratch = scratch_.get();
    for (call.part = 0; call.part < kernel_->parts(); ++call.part) kernel_->run(call);
  }

 private:
  static std::vector<Layout> layouts(const std::vector<TensorInfo>& infos, std::uint32_t flexible,
                                     Layout layout) {
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const bool may = (flexible >> std::min<std::size_t>(i, 31) & 1U) != 0 && infos[i].shape.rank() == 4;
      layouts.push_back(may ? layout : Layout::plain);
    }
    return layouts;
  }
  static void fill(float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 1001) / 1000.0F - 0.5F;
  }

  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  std::unique_ptr<Kernel> kernel_;
  Cost cost_;
  std::vector<Buffer> buffers_;
  std::vector<std::byte*> input_pointers_;
  std::vector<std::byte*> output_pointers_;
  Buffer scratch_;
};

}  // namespace purine::bench
