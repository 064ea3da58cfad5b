// Which algorithm computes a convolution.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "purine/graph/contract.h"
#include "purine/ops/convolution.h"

namespace purine::cpu {

enum class ConvolutionPass : std::uint8_t { forward, input_gradient, weight_gradient };

/// `direct` sums as the definition does (oneDNN), and so does `blocked`, in blocks of our own; `winograd_2`
/// and `winograd_4` are Winograd's algorithm with tiles of 2 x 2 and 4 x 4 outputs.
enum class ConvolutionAlgorithm : std::uint8_t { direct, blocked, winograd_2, winograd_4 };
inline constexpr std::array convolution_algorithms = {
    ConvolutionAlgorithm::direct, ConvolutionAlgorithm::blocked, ConvolutionAlgorithm::winograd_2,
    ConvolutionAlgorithm::winograd_4};

std::string_view name_of(ConvolutionAlgorithm algorithm);
/// Outputs of a tile a side, of an algorithm that has tiles.
int tile_of(ConvolutionAlgorithm algorithm);

/// A convolution in f32, by the shapes of its forward operator: image [N, C, H, W], weight
/// [O, C / groups, KH, KW], output [N, O, OH, OW].
struct ConvolutionProblem {
  Shape image;
  Shape weight;
  Shape output;
  ops::Conv2dOptions options;
  Layout layout = Layout::plain;
  bool has_bias = false;  ///< forward: there is one to add; weight gradient: its gradient is wanted, too

  /// Of the definition, a multiply-add counting two.
  double operations() const {
    return 2.0 * static_cast<double>(output.elements()) *
           static_cast<double>(weight[1] * weight[2] * weight[3]);
  }
};

/// True where the algorithm can compute it.
bool can_compute(ConvolutionAlgorithm algorithm, const ConvolutionProblem& problem);

/// The fastest algorithm, by a rule made from measurements (`bench_operators`). It depends on the shapes
/// alone: the same program gives the same bits on every machine of one instruction set.
ConvolutionAlgorithm choose_convolution(ConvolutionPass pass, const ConvolutionProblem& problem);

}  // namespace purine::cpu
