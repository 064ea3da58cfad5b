// What an operator does on one kind of device, and how a backend offers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/contract.h"

namespace purine {

/// One execution of a kernel.
struct KernelCall {
  std::span<std::byte* const> inputs;   ///< one pointer an input, aligned to 64 bytes
  std::span<std::byte* const> outputs;  ///< one pointer an output, aligned to 64 bytes
  std::byte* scratch =
      nullptr;  ///< scratch_bytes() bytes of the worker's own, aligned to 64; undefined content
  std::int64_t iteration = 0;  ///< counted from the start of training, across resumes
  int part = 0;                ///< which part, below parts()
  /// True where the last that used the scratch memory was another part of this same execution, whose content
  /// it still has: what all parts make anew, such as weights in another format, need not be made again.
  bool scratch_kept = false;

  template <typename T>
  const T* input(int index) const {
    return reinterpret_cast<const T*>(inputs[static_cast<std::size_t>(index)]);
  }
  template <typename T>
  T* output(int index) const {
    return reinterpret_cast<T*>(outputs[static_cast<std::size_t>(index)]);
  }
};

/// A kernel bound to one operator of a Program: shapes, dtypes and layouts are fixed, choices are made, and
/// whatever can be prepared is. `run` is called by any worker thread; a kernel is never run twice at the same
/// time, except for its own parts.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Independent parts of one execution, which may run at the same time on several workers, in any order. The
  /// number depends on shapes alone, never on the number of workers: the same Program gives the same bits.
  virtual int parts() const { return 1; }
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Of what a worker makes in the scratch memory for all parts of an execution that it runs one after the
  /// other (KernelCall::scratch_kept): for estimates of what dividing the work costs.
  virtual std::size_t kept_bytes() const { return 0; }
  /// Runs one part. Errors are thrown: Error(type, message, hint); the dispatcher adds path and location.
  virtual void run(const KernelCall& call) = 0;

  /// Which of several algorithms it runs, for reports: `winograd_4`; empty where there is one alone.
  std::string_view algorithm() const { return algorithm_; }
  /// Whoever chooses among algorithms names it; the text must stay as it is.
  void set_algorithm(std::string_view algorithm) { algorithm_ = algorithm; }

 private:
  std::string_view algorithm_;
};

/// What a kernel is bound to.
struct BindContext {
  const Contract& contract;
  std::span<const TensorInfo> inputs;
  std::span<const TensorInfo> outputs;
  std::span<const Layout> input_layouts;
  std::span<const Layout> output_layouts;
  std::uint64_t seed = 0;    ///< the run's
  std::uint64_t stream = 0;  ///< the operator's own random stream: purine::Random(seed, stream, iteration)
  std::string path;          ///< for messages

  /// The contract as its own type.
  template <typename T>
  const T& as() const {
    return dynamic_cast<const T&>(contract);
  }
  const TensorInfo& input(int index) const { return inputs[static_cast<std::size_t>(index)]; }
  const TensorInfo& output(int index) const { return outputs[static_cast<std::size_t>(index)]; }
};

using BindFunction = std::function<std::unique_ptr<Kernel>(const BindContext&)>;

/// The kernels of one kind of device, by operator type.
class KernelRegistry {
 public:
  /// Registers the kernel of an operator type; a second one of the same type is a bug.
  void add(std::string_view type, BindFunction bind);
  /// Registers the kernel of an operator type in place of the one it has, if any.
  void set(std::string_view type, BindFunction bind);
  bool has(std::string_view type) const;
  /// Binds a kernel. A type without one throws Error naming the operator.
  std::unique_ptr<Kernel> bind(const BindContext& context) const;
  std::vector<std::string> types() const;

 private:
  std::map<std::string, BindFunction, std::less<>> functions_;
};

/// A kernel from a function: `make_kernel([=](const KernelCall& call) { … }, parts)`.
template <typename Function>
std::unique_ptr<Kernel> make_kernel(Function function, int parts = 1, std::size_t scratch_bytes = 0) {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(Function function, int parts, std::size_t scratch_bytes)
        : function_(std::move(function)), parts_(parts), scratch_bytes_(scratch_bytes) {}
    int parts() const override { return parts_; }
    std::size_t scratch_bytes() const override { return scratch_bytes_; }
    void run(const KernelCall& call) override { function_(call); }

   private:
    Function function_;
    int parts_;
    std::size_t scratch_bytes_;
  };
  return std::make_unique<FunctionKernel>(std::move(function), parts, scratch_bytes);
}

}  // namespace purine
