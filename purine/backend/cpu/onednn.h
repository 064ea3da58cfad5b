// oneDNN, versions 2.6 and 3: nothing else includes its headers, and the differences of the versions end
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

#include "purine/graph/contract.h"
#include "purine/program/kernel.h"

namespace purine::cpu::onednn {

/// While it lives, OpenMP gives the calling thread no helpers. Primitives run with as many threads as they
/// were made for, so it is held when a kernel is bound and when it runs; on a thread that has called
/// `prepare_worker_thread` it changes nothing.
class SingleThread {
 public:
  SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;
  ~SingleThread();

 private:
  int outer_;
};

/// An f32 tensor in row-major order, or with the channels last.
dnnl::memory::desc describe(const Shape& shape, Layout layout = Layout::plain);
/// An f32 tensor whose elements lie at these distances.
dnnl::memory::desc describe(const dnnl::memory::dims& extents, const dnnl::memory::dims& strides);
/// The same tensor in whatever format a primitive likes best.
dnnl::memory::desc in_any_format(const dnnl::memory::desc& desc);

/// Primitives that run one after the other, with all the memory they need: the inputs and outputs of a
/// KernelCall, and intermediate tensors and scratch pads in its scratch memory. Made when a kernel is bound;
/// running it allocates nothing of ours. Everything throws Error where oneDNN refuses.
class Sequence {
 public:
  /// A tensor that the primitives read or write.
  using Argument = std::size_t;

  Sequence();
  Sequence(Sequence&&) = default;
  Sequence& operator=(Sequence&&) = default;

  const dnnl::engine& engine() const { return engine_; }
  /// Input or output `index` of the call, from byte `offset` on.
  Argument input(int index, const dnnl::memory::desc& desc, std::int64_t offset = 0);
  Argument output(int index, const dnnl::memory::desc& desc, std::int64_t offset = 0);
  /// A tensor in the scratch memory.
  Argument intermediate(const dnnl::memory::desc& desc);
  /// Memory of one's own, which stays where it is.
  Argument fixed(void* address, const dnnl::memory::desc& desc);

  /// Primitives that are described from here on add to what their output holds, or no longer do.
  void add_to_output(bool adds);

  /// The same memory as another argument's, described otherwise.
  Argument view(Argument argument, const dnnl::memory::desc& desc);
  /// The argument in another format: itself where it has this one already, else an intermediate that it is
  /// copied to before what is added next.
  Argument converted(Argument argument, const dnnl::memory::desc& desc);
  /// The same for an argument that is the same in all parts of a kernel, as weights are: where the scratch
  /// memory is kept from another part, it isn't copied again (see SequenceKernel).
  Argument converted_once(Argument argument, const dnnl::memory::desc& desc);
  /// True if what this sequence converts once, another one finds at the same place in the same format.
  bool converts_once_as(const Sequence& other) const { return converted_once_ == other.converted_once_; }
  /// Of all that it converts once.
  std::size_t converted_once_bytes() const;
  /// Adds a copy from one format to another; nothing is done where both turn out to be the same memory.
  void copy(Argument from, Argument to);
  /// Adds a primitive, with its arguments as pairs of oneDNN's number (DNNL_ARG_SRC) and ours.
  template <typename Primitive>
  void add(const typename Primitive::primitive_desc& primitive_desc,
           std::initializer_list<std::pair<int, Argument>> arguments) {
    add(guarded([&] { return Primitive(primitive_desc); }), primitive_desc.scratchpad_desc(), arguments);
  }

  /// A primitive's description from the arguments that both versions of the library take alike.
  template <typename Primitive, typename... Arguments>
  auto describe_primitive(const Arguments&... arguments) const {
    return guarded([&] {
#if DNNL_VERSION_MAJOR >= 3
      return typename Primitive::primitive_desc(engine_, arguments..., attributes_);
#else
      return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes_, engine_);
#endif
    });
  }
  /// The same for a backward primitive, which wants to know its forward one.
  template <typename Primitive, typename Forward, typename... Arguments>
  auto describe_backward(const Forward& forward, const Arguments&... arguments) const {
    return guarded([&] {
#if DNNL_VERSION_MAJOR >= 3
      return typename Primitive::primitive_desc(engine_, arguments..., forward, attributes_);
#else
      return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes_, engine_,
                                                forward);
#endif
    });
  }

  std::size_t scratch_bytes() const {
    return intermediate_bytes_ + scratchpad_bytes_;
  }
  /// Runs all primitives, in the order in which they were added, on the calling thread; not twice at a time.
  void run(const KernelCall& call);

 private:
  enum class Place : std::uint8_t { input, output, scratch, scratchpad, fixed };
  struct Slot {
    dnnl::memory memory;
    Place place;
    int index;
    std::int64_t offset;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    bool once = false;     // not where the scratch memory is kept
    bool is_copy = false;  // not where its two arguments, `from` and `to`, lie at one place
    Argument from = 0;
    Argument to = 0;
  };

  Argument add_slot(Place place, int index, std::int64_t offset, const dnnl::memory::desc& desc);
  void add(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
           std::initializer_list<std::pair<int, Argument>> arguments);
  [[noreturn]] static void fail(const char* what);

  template <typename Function>
  static auto guarded(Function function) {
    try {
      return function();
    } catch (const dnnl::error& error) {
      fail(error.message);
    }
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive_attr attributes_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<std::pair<std::int64_t, dnnl::memory::desc>>
      converted_once_;  // place in the scratch memory, format
  std::size_t intermediate_bytes_ = 0;
  std::size_t scratchpad_bytes_ = 0;
};

/// A kernel whose every part is a sequence. What they convert once is converted once a worker and execution,
/// if it has the same format for all of them.
class SequenceKernel final : public Kernel {
 public:
  explicit SequenceKernel(std::vector<Sequence> parts);
  int parts() const override { return static_cast<int>(parts_.size()); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t kept_bytes() const override { return parts_.front().converted_once_bytes(); }
  void run(const KernelCall& call) override;

 private:
  std::vector<Sequence> parts_;
  std::size_t scratch_bytes_ = 0;
  bool alike_ = true;
};

}  // namespace purine::cpu::onednn
