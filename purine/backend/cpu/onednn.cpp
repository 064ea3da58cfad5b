#include "purine/backend/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <string>

#include "purine/core/error.h"

namespace purine::cpu::onednn {
namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

dnnl::memory::dims extents_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

}  // namespace

SingleThread::SingleThread() : outer_(omp_get_max_threads()) {
  if (outer_ != 1) omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (outer_ != 1) omp_set_num_threads(outer_);
}

dnnl::memory::desc describe(const Shape& shape, Layout layout) {
  if (layout == Layout::channels_last && shape.rank() == 4) {
    return {extents_of(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc};
  }
  const auto strides = shape.strides();
  return describe(extents_of(shape), {strides.begin(), strides.begin() + shape.rank()});
}

dnnl::memory::desc describe(const dnnl::memory::dims& extents, const dnnl::memory::dims& strides) {
  return {extents, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc in_any_format(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return {desc.get_dims(), desc.get_data_type(), dnnl::memory::format_tag::any};
#else
  return {desc.dims(), static_cast<dnnl::memory::data_type>(desc.data.data_type),
          dnnl::memory::format_tag::any};
#endif
}

Sequence::Sequence() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  add_to_output(false);
}

void Sequence::add_to_output(bool adds) {
  // Made anew: version 2.6 appends what is set to what was.
  attributes_ = dnnl::primitive_attr();
  attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!adds) return;
  dnnl::post_ops operations;
  operations.append_sum();
  guarded([&] { attributes_.set_post_ops(operations); });
}

Sequence::Argument Sequence::add_slot(Place place, int index, std::int64_t offset,
                                      const dnnl::memory::desc& desc) {
  slots_.push_back(
      {guarded([&] { return dnnl::memory(desc, engine_, DNNL_MEMORY_NONE); }), place, index, offset});
  return slots_.size() - 1;
}

Sequence::Argument Sequence::input(int index, const dnnl::memory::desc& desc, std::int64_t offset) {
  return add_slot(Place::input, index, offset, desc);
}

Sequence::Argument Sequence::output(int index, const dnnl::memory::desc& desc, std::int64_t offset) {
  return add_slot(Place::output, index, offset, desc);
}

Sequence::Argument Sequence::intermediate(const dnnl::memory::desc& desc) {
  const Argument argument = add_slot(Place::scratch, 0, static_cast<std::int64_t>(intermediate_bytes_), desc);
  intermediate_bytes_ += aligned(desc.get_size());
  return argument;
}

Sequence::Argument Sequence::fixed(void* address, const dnnl::memory::desc& desc) {
  const Argument argument = add_slot(Place::fixed, 0, 0, desc);
  guarded([&] { slots_[argument].memory.set_data_handle(address); });
  return argument;
}

Sequence::Argument Sequence::view(Argument argument, const dnnl::memory::desc& desc) {
  const Slot& slot = slots_[argument];
  return add_slot(slot.place, slot.index, slot.offset, desc);
}

Sequence::Argument Sequence::converted(Argument argument, const dnnl::memory::desc& desc) {
  if (slots_[argument].memory.get_desc() == desc) return argument;
  const Argument other = intermediate(desc);
  copy(argument, other);
  return other;
}

Sequence::Argument Sequence::converted_once(Argument argument, const dnnl::memory::desc& desc) {
  const std::size_t steps = steps_.size();
  const Argument result = converted(argument, desc);
  if (steps_.size() > steps) {
    steps_.back().once = true;
    converted_once_.emplace_back(slots_[result].offset, desc);
  }
  return result;
}

void Sequence::copy(Argument from, Argument to) {
  const auto primitive_desc = guarded([&] {
    return dnnl::reorder::primitive_desc(engine_, slots_[from].memory.get_desc(), engine_,
                                         slots_[to].memory.get_desc(), attributes_);
  });
  add<dnnl::reorder>(primitive_desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  Step& step = steps_.back();
  step.is_copy = true;
  step.from = from;
  step.to = to;
}

void Sequence::add(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                   std::initializer_list<std::pair<int, Argument>> arguments) {
  Step step{std::move(primitive), {}};
  for (const auto& [number, argument] : arguments) {
    step.arguments.push_back({number, slots_[argument].memory.get()});
  }
  const std::size_t bytes = scratchpad.get_size();
  if (bytes > 0) {
    // Only one primitive runs at a time: all scratch pads lie at the same place, after the intermediates.
    const Argument argument = add_slot(Place::scratchpad, 0, 0, scratchpad);
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, slots_[argument].memory.get()});
    scratchpad_bytes_ = std::max(scratchpad_bytes_, aligned(bytes));
  }
  steps_.push_back(std::move(step));
}

void Sequence::run(const KernelCall& call) {
  const SingleThread single_thread;
  for (const Slot& slot : slots_) {
    std::byte* base = nullptr;
    switch (slot.place) {
      case Place::input:
        base = call.inputs[static_cast<std::size_t>(slot.index)];
        break;
      case Place::output:
        base = call.outputs[static_cast<std::size_t>(slot.index)];
        break;
      case Place::scratch:
        base = call.scratch;
        break;
      case Place::scratchpad:
        base = call.scratch + intermediate_bytes_;
        break;
      case Place::fixed:
        continue;
    }
    guarded([&] { slot.memory.set_data_handle(base + slot.offset); });
  }
  for (const Step& step : steps_) {
    if (step.once && call.scratch_kept) continue;
    if (step.is_copy &&
        slots_[step.from].memory.get_data_handle() == slots_[step.to].memory.get_data_handle()) {
      continue;
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        step.primitive.get(), stream_.get(), static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) fail("could not execute a primitive");
  }
}

std::size_t Sequence::converted_once_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [place, desc] : converted_once_) bytes += desc.get_size();
  return bytes;
}

void Sequence::fail(const char* what) {
  throw Error("onednn", what);
}

SequenceKernel::SequenceKernel(std::vector<Sequence> parts) : parts_(std::move(parts)) {
  for (const Sequence& part : parts_) {
    scratch_bytes_ = std::max(scratch_bytes_, part.scratch_bytes());
    alike_ = alike_ && part.converts_once_as(parts_.front());
  }
}

void SequenceKernel::run(const KernelCall& call) {
  Sequence& part = parts_[static_cast<std::size_t>(call.part)];
  if (alike_ || !call.scratch_kept) {
    part.run(call);
    return;
  }
  KernelCall anew = call;
  anew.scratch_kept = false;
  part.run(anew);
}

}  // namespace purine::cpu::onednn
