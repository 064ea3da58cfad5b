#include "purine/backend/cpu/convolution_choice.h"

#include <algorithm>
#include <array>

#include "purine/backend/cpu/blocked_convolution.h"
#include "purine/backend/cpu/winograd.h"

namespace purine::cpu {

int tile_of(ConvolutionAlgorithm algorithm) {
  PURINE_CHECK(algorithm == ConvolutionAlgorithm::winograd_2 ||
               algorithm == ConvolutionAlgorithm::winograd_4);
  return algorithm == ConvolutionAlgorithm::winograd_2 ? 2 : 4;
}

std::string_view name_of(ConvolutionAlgorithm algorithm) {
  switch (algorithm) {
    case ConvolutionAlgorithm::direct:
      return "direct";
    case ConvolutionAlgorithm::blocked:
      return "blocked";
    case ConvolutionAlgorithm::winograd_2:
      return "winograd_2";
    case ConvolutionAlgorithm::winograd_4:
      return "winograd_4";
  }
  return "";
}

bool can_compute(ConvolutionAlgorithm algorithm, const ConvolutionProblem& problem) {
  if (algorithm == ConvolutionAlgorithm::direct) return true;
  if (algorithm == ConvolutionAlgorithm::blocked) {
    return problem.layout == Layout::channels_last &&
           blocked_applies(problem.image, problem.weight, problem.options);
  }
  return problem.layout == Layout::channels_last &&
         winograd_applies(problem.weight, problem.options, tile_of(algorithm));
}

namespace {

/// Where our own blocks, which bring in memory while they compute, are faster than oneDNN.
bool blocked_is_faster(ConvolutionPass pass, const ConvolutionProblem& problem) {
  if (!can_compute(ConvolutionAlgorithm::blocked, problem)) return false;
  const bool single = problem.weight[2] == 1 && problem.weight[3] == 1;
  const bool strided = problem.options.stride != std::array<std::int64_t, 2>{1, 1};
  const std::int64_t channels = problem.image[1];
  const std::int64_t outputs = problem.weight[0];
  const std::int64_t weights = problem.weight.elements();
  const std::int64_t pixels = problem.output[0] * problem.output[2] * problem.output[3];
  const std::int64_t fewer = std::min(channels, outputs);
  switch (pass) {
    case ConvolutionPass::forward:
      return single && (!strided || channels >= 512);
    case ConvolutionPass::input_gradient:
      return single && !strided && weights <= std::int64_t{1} << 17 && pixels >= 4096;
    case ConvolutionPass::weight_gradient:
      if (strided && !single) return fewer >= 64;
      if (strided) return weights >= std::int64_t{1} << 20 && pixels <= 1024;
      return single && fewer >= 64 &&
             (pixels <= 1024 || channels >= 1024 || 4 * fewer >= 3 * std::max(channels, outputs));
  }
  return false;
}

}  // namespace

ConvolutionAlgorithm choose_convolution(ConvolutionPass pass, const ConvolutionProblem& problem) {
  // What the pass computes from what: the input gradient goes from outputs to image.
  const bool backwards = pass == ConvolutionPass::input_gradient;
  const Shape& result = backwards ? problem.image : problem.output;
  const auto inputs = static_cast<double>(backwards ? problem.output[1] : problem.image[1]);
  const auto outputs = static_cast<double>(result[1]);
  const auto tiles = [&](int extent) {
    return static_cast<double>(
        backwards ? winograd_input_gradient_tiles(problem.image, problem.weight, problem.output, extent)
                  : result[0] * ((result[2] + extent - 1) / extent) * ((result[3] + extent - 1) / extent));
  };
  // Times as multiply-adds for each pair of an input and an output channel. Those of a tile are its products
  // with a fifth more than they are, since they wait for memory, and its transforms, which are shared by all
  // channels of one side. The last summand is the transform of the weights.
  const auto pixels = static_cast<double>(problem.output[0] * problem.output[2] * problem.output[3]);
  const double direct = static_cast<double>(problem.weight[2] * problem.weight[3]) * pixels;
  const auto time = [&](ConvolutionAlgorithm algorithm) {
    const int tile = tile_of(algorithm);
    const bool four_points = tile + problem.weight[2] == 5;
    return tiles(tile) *
               (four_points ? 19 + 250 / outputs + 150 / inputs : 46 + 600 / outputs + 500 / inputs) +
           (four_points ? 465 : 900);
  };
  constexpr double worthwhile = 0.9;  // what the estimates are good to
  ConvolutionAlgorithm fastest =
      blocked_is_faster(pass, problem) ? ConvolutionAlgorithm::blocked : ConvolutionAlgorithm::direct;
  double least = worthwhile * direct;
  for (const auto algorithm : {ConvolutionAlgorithm::winograd_2, ConvolutionAlgorithm::winograd_4}) {
    if (!can_compute(algorithm, problem) || time(algorithm) >= least) continue;
    fastest = algorithm;
    least = time(algorithm);
  }
  return fastest;
}

}  // namespace purine::cpu
