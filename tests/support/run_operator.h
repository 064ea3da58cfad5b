// Runs one operator's CPU kernel on host arrays, all its parts, and checks that it keeps within its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "purine/backend/cpu/kernels.h"
#include "purine/core/error.h"
#include "purine/core/random.h"
#include "purine/graph/contract.h"
#include "purine/program/kernel.h"
#include "tests/support/array.h"

namespace purine::test {

enum class PartOrder : std::uint8_t { ascending, descending, shuffled };

struct RunOptions {
  /// Of the rank-4 tensors that the operator's LayoutRule lets be in another layout than plain.
  Layout layout = Layout::plain;
  /// Where they are not empty, the layouts of all inputs and outputs instead.
  std::vector<Layout> input_layouts = {};
  std::vector<Layout> output_layouts = {};
  /// Outputs lie in the storage of the inputs that `Contract::sharing` names: all that can, or one of the
  /// list.
  bool in_place = false;
  int only_sharing = -1;
  PartOrder part_order = PartOrder::ascending;
  /// Each part finds in the scratch memory what the one before it left, as on a worker that runs several.
  bool keep_scratch = false;
  std::uint64_t seed = 1;
  std::uint64_t stream = 2;
  std::int64_t iteration = 0;
  std::string path = "test/operator";
  /// Null: all kernels of the CPU.
  const KernelRegistry* kernels = nullptr;
  /// What every byte of the outputs is before the run; the default is NaN in floating types.
  unsigned char fill = 0xff;
};

/// The kernels of the CPU.
inline const KernelRegistry& cpu_kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
    cpu::register_cpu_kernels(kernels);
    return kernels;
  }();
  return registry;
}

/// The layouts of an operator's tensors where its flexible ones have `layout`.
inline std::vector<Layout> layouts_of(std::span<const TensorInfo> infos, std::uint32_t flexible,
                                      Layout layout) {
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const bool may = (flexible >> std::min<std::size_t>(i, 31) & 1U) != 0 && infos[i].shape.rank() == 4;
    layouts.push_back(may ? layout : Layout::plain);
  }
  return layouts;
}

inline std::vector<TensorInfo> infos_of(std::span<const Array> arrays) {
  std::vector<TensorInfo> infos;
  for (const Array& array : arrays) infos.push_back(array.info());
  return infos;
}

/// One operator bound to its CPU kernel, run as often as wanted.
class BoundOperator {
 public:
  BoundOperator(ContractPtr contract, std::vector<TensorInfo> inputs, RunOptions options = {})
      : contract_(std::move(contract)), inputs_(std::move(inputs)), options_(std::move(options)) {
    outputs_ = contract_->infer(inputs_);
    const LayoutRule rule = contract_->layouts();
    input_layouts_ = options_.input_layouts.empty() ? layouts_of(inputs_, rule.inputs, options_.layout)
                                                    : options_.input_layouts;
    output_layouts_ = options_.output_layouts.empty() ? layouts_of(outputs_, rule.outputs, options_.layout)
                                                      : options_.output_layouts;
    const KernelRegistry& kernels = options_.kernels == nullptr ? cpu_kernels() : *options_.kernels;
    kernel_ = kernels.bind({*contract_, inputs_, outputs_, input_layouts_, output_layouts_, options_.seed,
                            options_.stream, options_.path});
    for (const TensorInfo& info : inputs_) input_buffers_.emplace_back(info.bytes());
    for (const TensorInfo& info : outputs_) output_buffers_.emplace_back(info.bytes());
    if (kernel_->scratch_bytes() > 0) scratch_.emplace_back(kernel_->scratch_bytes());
    for (GuardedBuffer& buffer : input_buffers_) input_pointers_.push_back(buffer.data());
    for (GuardedBuffer& buffer : output_buffers_) output_pointers_.push_back(buffer.data());
    if (options_.in_place) share();
  }

  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  int parts() const { return kernel_->parts(); }

  /// Runs all parts and gives the outputs. Throws what the kernel throws; writes outside of an output, an
  /// input or the scratch memory, and writes to an input that is not shared, throw std::logic_error.
  std::vector<Array> run(std::span<const Array> inputs) {
    PURINE_CHECK_EQUAL(inputs.size(), inputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      std::memset(output_pointers_[i], options_.fill, outputs_[i].bytes());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      PURINE_CHECK(inputs[i].info() == inputs_[i]);
      convert_layout(inputs_[i].shape, size_of(inputs_[i].dtype), input_layouts_[i], inputs[i].bytes(),
                     input_pointers_[i], true);
    }
    std::vector<int> order(static_cast<std::size_t>(kernel_->parts()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    if (options_.part_order == PartOrder::descending) std::reverse(order.begin(), order.end());
    if (options_.part_order == PartOrder::shuffled) {
      const Random random(7, 7, 0);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
    }
    KernelCall call;
    call.inputs = input_pointers_;
    call.outputs = output_pointers_;
    call.iteration = options_.iteration;
    for (const int part : order) {
      call.scratch_kept = options_.keep_scratch && part != order.front();
      if (!scratch_.empty()) {
        if (!call.scratch_kept) std::memset(scratch_[0].data(), 0xff, scratch_[0].size());
        call.scratch = scratch_[0].data();
      }
      call.part = part;
      kernel_->run(call);
    }
    check_memory(inputs);
    std::vector<Array> results;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      results.emplace_back(outputs_[i]);
      convert_layout(outputs_[i].shape, size_of(outputs_[i].dtype), output_layouts_[i], output_pointers_[i],
                     results.back().bytes(), false);
    }
    return results;
  }

 private:
  // Each output in the first input that the contract offers and no other output has taken.
  void share() {
    shared_.assign(inputs_.size(), false);
    std::vector<bool> placed(outputs_.size(), false);
    const std::vector<Sharing> all = contract_->sharing();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (options_.only_sharing >= 0 && static_cast<std::size_t>(options_.only_sharing) != i) continue;
      const Sharing& sharing = all[i];
      const auto input = static_cast<std::size_t>(sharing.input);
      const auto output = static_cast<std::size_t>(sharing.output);
      if (input >= inputs_.size() || shared_[input] || placed[output]) continue;
      const bool view = sharing.kind == Sharing::Kind::view;
      if (view ? inputs_[input].bytes() != outputs_[output].bytes() : !(inputs_[input] == outputs_[output]))
        continue;
      shared_[input] = true;
      placed[output] = true;
      output_pointers_[output] = input_pointers_[input];
    }
  }

  void check_memory(std::span<const Array> inputs) {
    for (const GuardedBuffer& buffer : output_buffers_) {
      if (!buffer.intact()) throw std::logic_error(name() + " writes outside of an output");
    }
    for (const GuardedBuffer& buffer : scratch_) {
      if (!buffer.intact()) throw std::logic_error(name() + " writes outside of its scratch memory");
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!input_buffers_[i].intact()) throw std::logic_error(name() + " writes outside of an input");
      if (!shared_.empty() && shared_[i]) continue;
      Array after(inputs_[i]);
      convert_layout(inputs_[i].shape, size_of(inputs_[i].dtype), input_layouts_[i], input_pointers_[i],
                     after.bytes(), false);
      if (!(after == inputs[i])) throw std::logic_error(name() + " changes input " + std::to_string(i));
    }
  }

  std::string name() const { return std::string(contract_->type()) + " " + contract_->attributes(); }

  ContractPtr contract_;
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  RunOptions options_;
  std::vector<Layout> input_layouts_;
  std::vector<Layout> output_layouts_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<GuardedBuffer> input_buffers_;
  std::vector<GuardedBuffer> output_buffers_;
  std::vector<GuardedBuffer> scratch_;
  std::vector<std::byte*> input_pointers_;
  std::vector<std::byte*> output_pointers_;
  std::vector<bool> shared_;
};

/// Binds and runs an operator once.
inline std::vector<Array> run_operator(const ContractPtr& contract, std::span<const Array> inputs,
                                       const RunOptions& options = {}) {
  return BoundOperator(contract, infos_of(inputs), options).run(inputs);
}

inline std::vector<Array> run_operator(const ContractPtr& contract, std::initializer_list<Array> inputs,
                                       const RunOptions& options = {}) {
  return run_operator(contract, std::span<const Array>(inputs.begin(), inputs.size()), options);
}

}  // namespace purine::test
