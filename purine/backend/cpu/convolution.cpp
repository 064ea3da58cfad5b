#include "purine/backend/cpu/convolution.h"

#include <array>
#include <atomic>
#include <cstring>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/blocked_convolution.h"
#include "purine/backend/cpu/convolution_loops.h"
#include "purine/backend/cpu/onednn.h"
#include "purine/backend/cpu/winograd.h"
#include "purine/ops/convolution.h"

namespace purine::cpu {
namespace {

using dnnl::memory;
using onednn::Sequence;
using ops::Conv2dOptions;

/// The geometry of a convolution as oneDNN takes it.
struct Geometry {
  explicit Geometry(const Conv2dOptions& options)
      : strides{options.stride[0], options.stride[1]},
        dilates{options.dilation[0] - 1, options.dilation[1] - 1},
        padding_before{options.padding[0], options.padding[1]},
        padding_after{options.padding[2], options.padding[3]} {}
  memory::dims strides;
  memory::dims dilates;
  memory::dims padding_before;
  memory::dims padding_after;
};

/// A convolution, or the part of it that samples [begin, end) are.
struct Problem : ConvolutionProblem {
  int parts() const {
    const auto pixels = static_cast<double>(output[0] * output[2] * output[3]);
    return convolution_parts(output[0], operations(), pixels);
  }
  Problem samples(std::int64_t begin, std::int64_t end) const {
    Problem part = *this;
    part.image.set(0, end - begin);
    part.output.set(0, end - begin);
    return part;
  }
  /// Where every pixel is by itself, all of them as one row of one sample.
  Problem in_one_row() const {
    const bool apart = layout == Layout::channels_last && weight[2] == 1 && weight[3] == 1 &&
                       options.stride == std::array<std::int64_t, 2>{1, 1} &&
                       options.padding == std::array<std::int64_t, 4>{0, 0, 0, 0};
    if (!apart) return *this;
    Problem row = *this;
    row.image = {1, image[1], 1, image[0] * image[2] * image[3]};
    row.output = {1, output[1], 1, output[0] * output[2] * output[3]};
    return row;
  }
  std::int64_t image_bytes() const { return sample_bytes(image); }
  std::int64_t output_bytes() const { return sample_bytes(output); }

  memory::desc image_desc() const { return onednn::describe(image, layout); }
  memory::desc output_desc() const { return onednn::describe(output, layout); }
  memory::desc bias_desc() const { return onednn::describe(Shape{output[1]}); }
  /// Groups are a dimension of their own to oneDNN; the bytes are the same.
  memory::desc weight_desc() const {
    if (options.groups == 1) return onednn::describe(weight);
    const Shape grouped{options.groups, weight[0] / options.groups, weight[1], weight[2], weight[3]};
    return onednn::describe(grouped);
  }

 private:
  static std::int64_t sample_bytes(const Shape& shape) {
    return shape[1] * shape[2] * shape[3] * static_cast<std::int64_t>(sizeof(float));
  }
};

auto forward_desc(const Sequence& sequence, const Problem& problem, bool has_bias) {
  const Geometry geometry(problem.options);
  return sequence.describe_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, problem.image_desc(),
      onednn::in_any_format(problem.weight_desc()), has_bias ? problem.bias_desc() : memory::desc(),
      problem.output_desc(), geometry.strides, geometry.dilates, geometry.padding_before,
      geometry.padding_after);
}

Sequence forward_sequence(const Problem& whole, std::int64_t begin, std::int64_t end, bool has_bias) {
  const Problem problem = whole.samples(begin, end);
  Sequence sequence;
  const auto desc = forward_desc(sequence, problem, has_bias);
  const auto image = sequence.input(0, problem.image_desc(), begin * problem.image_bytes());
  const auto weight = sequence.converted_once(sequence.input(1, problem.weight_desc()), desc.weights_desc());
  const auto output = sequence.output(0, problem.output_desc(), begin * problem.output_bytes());
  if (has_bias) {
    const auto bias = sequence.input(2, problem.bias_desc());
    sequence.add<dnnl::convolution_forward>(
        desc,
        {{DNNL_ARG_SRC, image}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output}});
  } else {
    sequence.add<dnnl::convolution_forward>(
        desc, {{DNNL_ARG_SRC, image}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, output}});
  }
  return sequence;
}

Sequence input_gradient_sequence(const Problem& whole, std::int64_t begin, std::int64_t end) {
  const Problem problem = whole.samples(begin, end);
  const Geometry geometry(problem.options);
  Sequence sequence;
  const auto desc = sequence.describe_backward<dnnl::convolution_backward_data>(
      forward_desc(sequence, problem, false), dnnl::algorithm::convolution_direct, problem.image_desc(),
      onednn::in_any_format(problem.weight_desc()), problem.output_desc(), geometry.strides, geometry.dilates,
      geometry.padding_before, geometry.padding_after);
  const auto output = sequence.input(0, problem.output_desc(), begin * problem.output_bytes());
  const auto weight = sequence.converted_once(sequence.input(1, problem.weight_desc()), desc.weights_desc());
  const auto image = sequence.output(0, problem.image_desc(), begin * problem.image_bytes());
  sequence.add<dnnl::convolution_backward_data>(
      desc, {{DNNL_ARG_DIFF_DST, output}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, image}});
  return sequence;
}

/// Where a part of a weight gradient leaves its result; null: in the operator's outputs.
struct WeightGradientPlace {
  float* weight = nullptr;
  float* bias = nullptr;
};

Sequence weight_gradient_sequence(const Problem& whole, std::int64_t begin, std::int64_t end, bool has_bias,
                                  WeightGradientPlace place) {
  const Problem problem = whole.samples(begin, end).in_one_row();
  const Geometry geometry(problem.options);
  Sequence sequence;
  const auto desc = sequence.describe_backward<dnnl::convolution_backward_weights>(
      forward_desc(sequence, problem, has_bias), dnnl::algorithm::convolution_direct, problem.image_desc(),
      onednn::in_any_format(problem.weight_desc()), has_bias ? problem.bias_desc() : memory::desc(),
      problem.output_desc(), geometry.strides, geometry.dilates, geometry.padding_before,
      geometry.padding_after);
  const auto result = [&](int index, float* address, const memory::desc& result_desc) {
    return address == nullptr ? sequence.output(index, result_desc) : sequence.fixed(address, result_desc);
  };
  const auto image = sequence.input(0, problem.image_desc(), begin * whole.image_bytes());
  const auto output = sequence.input(1, problem.output_desc(), begin * whole.output_bytes());
  const auto weight = result(0, place.weight, problem.weight_desc());
  const bool same_format = desc.diff_weights_desc() == problem.weight_desc();
  const auto made = same_format ? weight : sequence.intermediate(desc.diff_weights_desc());
  if (has_bias) {
    const auto bias = result(1, place.bias, problem.bias_desc());
    sequence.add<dnnl::convolution_backward_weights>(desc, {{DNNL_ARG_SRC, image},
                                                            {DNNL_ARG_DIFF_DST, output},
                                                            {DNNL_ARG_DIFF_WEIGHTS, made},
                                                            {DNNL_ARG_DIFF_BIAS, bias}});
  } else {
    sequence.add<dnnl::convolution_backward_weights>(
        desc, {{DNNL_ARG_SRC, image}, {DNNL_ARG_DIFF_DST, output}, {DNNL_ARG_DIFF_WEIGHTS, made}});
  }
  if (!same_format) sequence.copy(made, weight);
  return sequence;
}

/// A weight gradient in parts over the batch: the first lies in the outputs, the others in memory of the
/// kernel, and whichever part ends last adds them up, always in the same order.
class SummedWeightGradient final : public Kernel {
 public:
  SummedWeightGradient(const Problem& problem, bool has_bias, int parts)
      : weights_(problem.weight.elements()),
        biases_(has_bias ? problem.output[1] : 0),
        partials_(static_cast<std::size_t>((parts - 1) * (weights_ + biases_))) {
    for (int part = 0; part < parts; ++part) {
      const auto [begin, end] = batch_range(problem.output[0], part, parts);
      float* place = part == 0 ? nullptr : partials_.data() + (part - 1) * (weights_ + biases_);
      parts_.push_back(weight_gradient_sequence(problem, begin, end, has_bias,
                                                {place, place == nullptr ? nullptr : place + weights_}));
      scratch_bytes_ = std::max(scratch_bytes_, parts_.back().scratch_bytes());
    }
  }

  int parts() const override { return static_cast<int>(parts_.size()); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  void run(const KernelCall& call) override {
    try {
      parts_[static_cast<std::size_t>(call.part)].run(call);
    } catch (...) {
      arrive();
      throw;
    }
    if (arrive()) add_up(call);
  }

 private:
  /// True for the last part of an execution.
  bool arrive() {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts()) return false;
    arrived_.store(0, std::memory_order_relaxed);
    return true;
  }
  void add_up(const KernelCall& call) {
    float* weight = call.output<float>(0);
    float* bias = biases_ > 0 ? call.output<float>(1) : nullptr;
    const float* partial = partials_.data();
    for (int part = 1; part < parts(); ++part) {
      for (std::int64_t i = 0; i < weights_; ++i) weight[i] += partial[i];
      partial += weights_;
      for (std::int64_t i = 0; i < biases_; ++i) bias[i] += partial[i];
      partial += biases_;
    }
  }

  std::int64_t weights_;
  std::int64_t biases_;
  std::vector<float> partials_;
  std::vector<Sequence> parts_;
  std::size_t scratch_bytes_ = 0;
  std::atomic<int> arrived_ = 0;
};

/// Sums over many pixels gain from parts; the memory for them stays below a mebibyte.
int weight_gradient_parts(const Problem& problem) {
  constexpr double operations_per_sum = 10e6;
  constexpr std::int64_t most_elements = 1 << 18;
  const int parts = batch_parts(problem.output[0], problem.operations(), operations_per_sum);
  return static_cast<int>(std::min<std::int64_t>(parts, 1 + most_elements / problem.weight.elements()));
}

template <typename MakeSequence>
std::unique_ptr<Kernel> divide_batch(const Problem& problem, MakeSequence make_sequence) {
  std::vector<Sequence> sequences;
  const int parts = problem.parts();
  for (int part = 0; part < parts; ++part) {
    const auto [begin, end] = batch_range(problem.output[0], part, parts);
    sequences.push_back(make_sequence(begin, end));
  }
  return std::make_unique<onednn::SequenceKernel>(std::move(sequences));
}

/// Without samples there is nothing to convolve, and the weights' gradient is 0.
std::unique_ptr<Kernel> bind_empty(const BindContext& context) {
  std::vector<std::size_t> bytes;
  for (const TensorInfo& output : context.outputs) bytes.push_back(output.bytes());
  return make_kernel([bytes](const KernelCall& call) {
    for (std::size_t i = 0; i < bytes.size(); ++i) std::memset(call.outputs[i], 0, bytes[i]);
  });
}

std::unique_ptr<Kernel> direct_convolution(ConvolutionPass pass, const ConvolutionProblem& whole) {
  const onednn::SingleThread single_thread;
  const Problem problem{whole};
  switch (pass) {
    case ConvolutionPass::forward:
      return divide_batch(problem, [&](std::int64_t begin, std::int64_t end) {
        return forward_sequence(problem, begin, end, problem.has_bias);
      });
    case ConvolutionPass::input_gradient:
      return divide_batch(problem, [&](std::int64_t begin, std::int64_t end) {
        return input_gradient_sequence(problem, begin, end);
      });
    case ConvolutionPass::weight_gradient:
      break;
  }
  return std::make_unique<SummedWeightGradient>(problem, problem.has_bias, weight_gradient_parts(problem));
}

std::unique_ptr<Kernel> winograd(ConvolutionPass pass, const ConvolutionProblem& problem, int tile) {
  const auto& [image, weight, output, options, layout, has_bias] = problem;
  switch (pass) {
    case ConvolutionPass::forward:
      return winograd_convolution(image, weight, output, options, has_bias, tile);
    case ConvolutionPass::input_gradient:
      return winograd_input_gradient(image, weight, output, options, tile);
    case ConvolutionPass::weight_gradient:
      break;
  }
  return winograd_weight_gradient(image, weight, output, options, has_bias, tile);
}

std::unique_ptr<Kernel> blocked(ConvolutionPass pass, const ConvolutionProblem& problem) {
  const auto& [image, weight, output, options, layout, has_bias] = problem;
  switch (pass) {
    case ConvolutionPass::forward:
      return blocked_convolution(image, weight, output, options, has_bias);
    case ConvolutionPass::input_gradient:
      return blocked_input_gradient(image, weight, output, options);
    case ConvolutionPass::weight_gradient:
      break;
  }
  return blocked_weight_gradient(image, weight, output, options, has_bias);
}

std::unique_ptr<Kernel> with_algorithm(ConvolutionPass pass, const ConvolutionProblem& problem,
                                       ConvolutionAlgorithm algorithm) {
  switch (algorithm) {
    case ConvolutionAlgorithm::direct:
      return direct_convolution(pass, problem);
    case ConvolutionAlgorithm::blocked:
      return blocked(pass, problem);
    case ConvolutionAlgorithm::winograd_2:
    case ConvolutionAlgorithm::winograd_4:
      break;
  }
  return winograd(pass, problem, tile_of(algorithm));
}

std::unique_ptr<Kernel> bind_conv2d(const BindContext& context, const ChooseConvolution& choose) {
  const auto& contract = context.as<ops::Conv2d>();
  const ConvolutionProblem problem{
      context.input(0).shape, context.input(1).shape,   context.output(0).shape,
      contract.options(),     context.input_layouts[0], context.inputs.size() == 3 && contract.adds_bias()};
  if (problem.image[0] == 0) return bind_empty(context);
  if (context.input(0).dtype == DType::f64) {
    return convolution_loops(problem.image, problem.weight, problem.output, problem.options, problem.layout,
                             problem.has_bias);
  }
  return make_convolution(ConvolutionPass::forward, problem, choose(ConvolutionPass::forward, problem));
}

std::unique_ptr<Kernel> bind_conv2d_input_gradient(const BindContext& context,
                                                   const ChooseConvolution& choose) {
  const ConvolutionProblem problem{context.output(0).shape, context.input(1).shape, context.input(0).shape,
                                   context.as<ops::Conv2dInputGradient>().options(),
                                   context.input_layouts[0]};
  if (problem.image[0] == 0) return bind_empty(context);
  if (context.input(0).dtype == DType::f64) {
    return convolution_input_gradient_loops(problem.image, problem.weight, problem.output, problem.options,
                                            problem.layout);
  }
  return make_convolution(ConvolutionPass::input_gradient, problem,
                          choose(ConvolutionPass::input_gradient, problem));
}

std::unique_ptr<Kernel> bind_conv2d_weight_gradient(const BindContext& context,
                                                    const ChooseConvolution& choose) {
  const auto& contract = context.as<ops::Conv2dWeightGradient>();
  const ConvolutionProblem problem{context.input(0).shape, context.output(0).shape,  context.input(1).shape,
                                   contract.options(),     context.input_layouts[0], contract.has_bias()};
  if (problem.image[0] == 0) return bind_empty(context);
  if (context.input(0).dtype == DType::f64) {
    return convolution_weight_gradient_loops(problem.image, problem.weight, problem.output, problem.options,
                                             problem.layout, problem.has_bias);
  }
  return make_convolution(ConvolutionPass::weight_gradient, problem,
                          choose(ConvolutionPass::weight_gradient, problem));
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(ConvolutionPass pass, const ConvolutionProblem& problem,
                                         ConvolutionAlgorithm algorithm) {
  PURINE_CHECK(can_compute(algorithm, problem));
  std::unique_ptr<Kernel> kernel = with_algorithm(pass, problem, algorithm);
  kernel->set_algorithm(name_of(algorithm));
  return kernel;
}

void set_convolutions(KernelRegistry& registry, const ChooseConvolution& choose) {
  registry.set("conv2d", [choose](const BindContext& context) { return bind_conv2d(context, choose); });
  registry.set("conv2d_input_gradient",
               [choose](const BindContext& context) { return bind_conv2d_input_gradient(context, choose); });
  registry.set("conv2d_weight_gradient",
               [choose](const BindContext& context) { return bind_conv2d_weight_gradient(context, choose); });
}

void register_convolution(KernelRegistry& registry) {
  set_convolutions(registry, choose_convolution);
}

}  // namespace purine::cpu
