#include "purine/ops/sibling_convolution.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/blocked_convolution.h"
#include "purine/backend/cpu/convolution_loops.h"
#include "purine/backend/cpu/onednn.h"
#include "purine/ops/convolution.h"

namespace purine::cpu {
namespace {

using dnnl::memory;
using onednn::Sequence;

/// Bytes of the image and all results that siblings work on one after the other: what stays in a second-level
/// cache.
constexpr std::int64_t chunk_bytes = 768 << 10;
constexpr std::int64_t float_bytes = sizeof(float);

/// Siblings in f32. Where the channels are last a pixel of any sample is like any other, and work is divided
/// by pixels; else by samples.
class Siblings {
 public:
  /// `image` [N, C, H, W], and the channels of each result.
  Siblings(const Shape& image, std::vector<std::int64_t> results, Layout layout)
      : channels_(image[1]), results_(std::move(results)), last_(layout == Layout::channels_last) {
    pixels_of_unit_ = last_ ? 1 : image[2] * image[3];
    units_ = last_ ? image[0] * image[2] * image[3] : image[0];
    const auto pixels = static_cast<double>(units_ * pixels_of_unit_);
    std::int64_t all = 0;
    for (const std::int64_t result : results_) all += result;
    const double operations = 2.0 * pixels * static_cast<double>(channels_ * all);
    parts_ = convolution_parts(units_, operations, pixels);
    most_chunk_ =
        std::max<std::int64_t>(1, chunk_bytes / ((channels_ + all) * pixels_of_unit_ * float_bytes));
  }

  std::size_t count() const { return results_.size(); }
  std::int64_t channels() const { return channels_; }
  std::int64_t result(std::size_t sibling) const { return results_[sibling]; }
  int parts() const { return parts_; }

  /// Calls function(begin, end) for the units of each chunk of a part: as few as fit the cache, of nearly
  /// equal size.
  template <typename Function>
  void for_chunks(int part, Function function) const {
    const auto [begin, end] = batch_range(units_, part, parts_);
    const std::int64_t chunks = (end - begin + most_chunk_ - 1) / most_chunk_;
    for (std::int64_t i = 0; i < chunks; ++i) {
      function(begin + (end - begin) * i / chunks, begin + (end - begin) * (i + 1) / chunks);
    }
  }
  /// Some units of a tensor of so many channels.
  memory::desc describe(std::int64_t channels, std::int64_t units) const {
    if (last_) return onednn::describe(Shape{1, channels, 1, units}, Layout::channels_last);
    return onednn::describe(Shape{units, channels, 1, pixels_of_unit_});
  }
  std::int64_t offset(std::int64_t channels, std::int64_t unit) const {
    return unit * channels * pixels_of_unit_ * float_bytes;
  }

 private:
  std::int64_t channels_;
  std::vector<std::int64_t> results_;
  bool last_;
  std::int64_t units_ = 0;
  std::int64_t pixels_of_unit_ = 0;
  int parts_ = 1;
  std::int64_t most_chunk_ = 1;
};

/// The convolution of one sibling in a sequence, of chunks of any extent: each extent has a primitive, and
/// the weight in the format that it likes best.
class ChunkConvolution {
 public:
  /// `weight_desc` is [channels to, channels from, 1, 1]. With `adds` the results add to what is there.
  ChunkConvolution(Sequence& sequence, Sequence::Argument weight, memory::desc weight_desc, bool adds)
      : sequence_(sequence), weight_(weight), weight_desc_(std::move(weight_desc)), adds_(adds) {}

  void add(const memory::desc& from_desc, Sequence::Argument from, const memory::desc& to_desc,
           Sequence::Argument to) {
    const Made& made = for_extent(from_desc, to_desc);
    sequence_.add<dnnl::convolution_forward>(
        made.primitive, {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, made.weight}, {DNNL_ARG_DST, to}});
  }

 private:
  struct Made {
    memory::desc from;
    dnnl::convolution_forward::primitive_desc primitive;
    Sequence::Argument weight;
  };

  const Made& for_extent(const memory::desc& from_desc, const memory::desc& to_desc) {
    for (const Made& made : made_) {
      if (made.from == from_desc) return made;
    }
    const memory::dims ones = {1, 1};
    const memory::dims zeros = {0, 0};
    sequence_.add_to_output(adds_);
    const auto primitive = sequence_.describe_primitive<dnnl::convolution_forward>(
        dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, from_desc,
        onednn::in_any_format(weight_desc_), memory::desc(), to_desc, ones, zeros, zeros, zeros);
    sequence_.add_to_output(false);
    for (const Made& made : made_) {
      if (made.primitive.weights_desc() != primitive.weights_desc()) continue;
      made_.push_back({from_desc, primitive, made.weight});
      return made_.back();
    }
    made_.push_back({from_desc, primitive, sequence_.converted_once(weight_, primitive.weights_desc())});
    return made_.back();
  }

  Sequence& sequence_;
  Sequence::Argument weight_;
  memory::desc weight_desc_;
  bool adds_;
  std::vector<Made> made_;
};

Sequence forward_sequence(const Siblings& siblings, int part) {
  Sequence sequence;
  std::vector<ChunkConvolution> convolutions;
  for (std::size_t i = 0; i < siblings.count(); ++i) {
    const memory::desc weight = onednn::describe(Shape{siblings.result(i), siblings.channels(), 1, 1});
    convolutions.emplace_back(sequence, sequence.input(static_cast<int>(i) + 1, weight), weight, false);
  }
  siblings.for_chunks(part, [&](std::int64_t begin, std::int64_t end) {
    const memory::desc image_desc = siblings.describe(siblings.channels(), end - begin);
    const auto image = sequence.input(0, image_desc, siblings.offset(siblings.channels(), begin));
    for (std::size_t i = 0; i < siblings.count(); ++i) {
      const memory::desc desc = siblings.describe(siblings.result(i), end - begin);
      const std::int64_t offset = siblings.offset(siblings.result(i), begin);
      convolutions[i].add(image_desc, image, desc, sequence.output(static_cast<int>(i), desc, offset));
    }
  });
  return sequence;
}

/// The gradient of a 1 x 1 convolution by its image is one with the weight's channels the other way round;
/// each adds to what those before it left in the chunk.
Sequence gradient_sequence(const Siblings& siblings, bool adds, int part) {
  Sequence sequence;
  const int count = static_cast<int>(siblings.count());
  std::vector<ChunkConvolution> convolutions;
  for (int i = 0; i < count; ++i) {
    const std::int64_t channels = siblings.result(static_cast<std::size_t>(i));
    const memory::desc weight =
        onednn::describe({siblings.channels(), channels, 1, 1}, {1, siblings.channels(), 1, 1});
    convolutions.emplace_back(sequence, sequence.input(count + i, weight), weight, adds || i > 0);
  }
  siblings.for_chunks(part, [&](std::int64_t begin, std::int64_t end) {
    const memory::desc image_desc = siblings.describe(siblings.channels(), end - begin);
    const std::int64_t image_offset = siblings.offset(siblings.channels(), begin);
    const auto image = sequence.output(0, image_desc, image_offset);
    if (adds) sequence.copy(sequence.input(2 * count, image_desc, image_offset), image);
    for (int i = 0; i < count; ++i) {
      const std::int64_t channels = siblings.result(static_cast<std::size_t>(i));
      const memory::desc desc = siblings.describe(channels, end - begin);
      const auto result = sequence.input(i, desc, siblings.offset(channels, begin));
      convolutions[static_cast<std::size_t>(i)].add(desc, result, image_desc, image);
    }
  });
  return sequence;
}

/// True where our own blocks, which are faster, can compute siblings.
bool in_blocks(const BindContext& context, const Shape& image, const std::vector<std::int64_t>& results) {
  return context.input_layouts[0] == Layout::channels_last &&
         std::all_of(results.begin(), results.end(), [&](std::int64_t channels) {
           return blocked_applies(image, {channels, image[1], 1, 1}, {});
         });
}

template <typename MakeSequence>
std::unique_ptr<Kernel> make_parts(const Siblings& siblings, MakeSequence make_sequence) {
  const onednn::SingleThread single_thread;
  std::vector<Sequence> parts;
  for (int part = 0; part < siblings.parts(); ++part) parts.push_back(make_sequence(part));
  return std::make_unique<onednn::SequenceKernel>(std::move(parts));
}

/// Kernels of single convolutions, run one after the other. In f64, as all convolutions, by plain loops.
struct Single {
  std::shared_ptr<Kernel> kernel;
  std::vector<std::byte*> inputs;
  void run(const KernelCall& call, std::byte* output) {
    std::byte* outputs[] = {output};
    kernel->run({inputs, outputs, call.scratch, call.iteration, 0});
  }
};

std::unique_ptr<Kernel> loops(const BindContext& context) {
  std::vector<Single> singles;
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    singles.push_back({convolution_loops(context.inputs[0].shape, context.inputs[i + 1].shape,
                                         context.outputs[i].shape, {}, context.input_layouts[0], false),
                       {}});
  }
  return make_kernel([singles](const KernelCall& call) mutable {
    for (std::size_t i = 0; i < singles.size(); ++i) {
      singles[i].inputs = {call.inputs[0], call.inputs[i + 1]};
      singles[i].run(call, call.outputs[i]);
    }
  });
}

std::unique_ptr<Kernel> gradient_loops(const BindContext& context,
                                       const ops::SiblingConv2dInputGradient& contract) {
  const std::size_t siblings = contract.siblings();
  const Shape& image = context.outputs[0].shape;
  std::vector<Single> singles;
  for (std::size_t i = 0; i < siblings; ++i) {
    singles.push_back(
        {convolution_input_gradient_loops(image, context.inputs[siblings + i].shape, context.inputs[i].shape,
                                          {}, context.input_layouts[0]),
         {}});
  }
  const std::int64_t elements = image.elements();
  const std::size_t bytes = context.outputs[0].bytes();
  const bool adds = contract.adds();
  return make_kernel(
      [=](const KernelCall& call) mutable {
        auto* sum = call.output<double>(0);
        if (!adds) std::fill_n(sum, elements, 0.0);
        if (adds && call.inputs.back() != call.outputs[0]) std::memcpy(sum, call.inputs.back(), bytes);
        for (std::size_t i = 0; i < siblings; ++i) {
          singles[i].inputs = {call.inputs[i], call.inputs[siblings + i]};
          singles[i].run(call, call.scratch);
          const auto* summand = reinterpret_cast<const double*>(call.scratch);
          for (std::int64_t k = 0; k < elements; ++k) sum[k] += summand[k];
        }
      },
      1, bytes);
}

std::unique_ptr<Kernel> bind(const BindContext& context) {
  if (context.input(0).shape.elements() == 0) return make_kernel([](const KernelCall&) {});
  if (context.input(0).dtype == DType::f64) return loops(context);
  std::vector<std::int64_t> channels;
  for (const TensorInfo& output : context.outputs) channels.push_back(output.shape[1]);
  if (in_blocks(context, context.input(0).shape, channels))
    return blocked_siblings(context.input(0).shape, channels);
  const Siblings siblings(context.input(0).shape, channels, context.input_layouts[0]);
  return make_parts(siblings, [&](int part) { return forward_sequence(siblings, part); });
}

std::unique_ptr<Kernel> bind_gradient(const BindContext& context) {
  const auto& contract = context.as<ops::SiblingConv2dInputGradient>();
  if (context.output(0).shape.elements() == 0) return make_kernel([](const KernelCall&) {});
  if (context.input(0).dtype == DType::f64) return gradient_loops(context, contract);
  std::vector<std::int64_t> channels;
  for (const TensorInfo& result : context.inputs.first(contract.siblings()))
    channels.push_back(result.shape[1]);
  // Of few pixels oneDNN's gradient is faster, as measured.
  constexpr std::int64_t least_pixels = 2048;
  const Shape& image = context.output(0).shape;
  if (image[0] * image[2] * image[3] >= least_pixels && in_blocks(context, image, channels))
    return blocked_siblings_gradient(image, channels, contract.adds());
  const Siblings siblings(image, channels, context.input_layouts[0]);
  return make_parts(siblings, [&](int part) { return gradient_sequence(siblings, contract.adds(), part); });
}

}  // namespace

void register_sibling_convolution(KernelRegistry& registry) {
  registry.add("sibling_conv2d", bind);
  registry.add("sibling_conv2d_input_gradient", bind_gradient);
}

}  // namespace purine::cpu
