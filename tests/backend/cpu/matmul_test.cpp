#include "purine/ops/matmul.h"

#include <gtest/gtest.h>

#include "tests/backend/cpu/compare_kernels.h"

namespace purine {
namespace {

using ops::Linear;
using ops::Matmul;
using test::compare_kernels;
using test::normal_array;

TEST(CpuMatmulTest, DividesTheLongerSide) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{30, 700}, {650, 33}}) {
        const std::int64_t inner = 300;
        const Shape a = transpose_a ? Shape{inner, rows} : Shape{rows, inner};
        const Shape b = transpose_b ? Shape{columns, inner} : Shape{inner, columns};
        compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{transpose_a, transpose_b, false}),
                        {normal_array(a, 1), normal_array(b, 2)}, {.least_parts = 2});
      }
    }
  }
}

TEST(CpuMatmulTest, DividesTheBatch) {
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{.transpose_b = true}),
                  {normal_array({5, 3, 64, 40}, 1), normal_array({5, 3, 70, 40}, 2)}, {.least_parts = 1});
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{.transpose_a = true}),
                  {normal_array({11, 80, 90}, 1), normal_array({11, 80, 100}, 2)}, {.least_parts = 3});
}

TEST(CpuMatmulTest, SharesASingleMatrix) {
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{}),
                  {normal_array({6, 50, 90}, 1), normal_array({90, 120}, 2)});
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{.transpose_a = true}),
                  {normal_array({6, 90, 50}, 1), normal_array({90, 120}, 2)});
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{.transpose_b = true}),
                  {normal_array({50, 90}, 1), normal_array({6, 120, 90}, 2)});
}

TEST(CpuMatmulTest, SumsOverTheBatchInEveryOrientation) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Shape a = transpose_a ? Shape{2, 3, 50, 70} : Shape{2, 3, 70, 50};
      const Shape b = transpose_b ? Shape{2, 3, 170, 50} : Shape{2, 3, 50, 170};
      compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{transpose_a, transpose_b, true}),
                      {normal_array(a, 1), normal_array(b, 2)}, {.tolerance = 5e-6});
    }
  }
}

TEST(CpuMatmulTest, VectorsAndScalars) {
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{}),
                  {normal_array({1, 257}, 1), normal_array({257, 1}, 2)});
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{}),
                  {normal_array({33, 1}, 1), normal_array({1, 65}, 2)});
  compare_kernels(std::make_shared<Matmul>(ops::MatmulOptions{}),
                  {normal_array({4, 1, 1}, 1), normal_array({4, 1, 1}, 2)});
}

TEST(CpuLinearTest, InPartsOverTheOutputs) {
  const auto contract = std::make_shared<Linear>();
  compare_kernels(contract, {normal_array({32, 400}, 1), normal_array({500, 400}, 2), normal_array({500}, 3)},
                  {.least_parts = 2});
  compare_kernels(contract, {normal_array({32, 400}, 1), normal_array({500, 400}, 2)}, {.least_parts = 2});
}

TEST(CpuLinearTest, OfLeadingDimensions) {
  compare_kernels(std::make_shared<Linear>(),
                  {normal_array({3, 5, 7, 20}, 1), normal_array({10, 20}, 2), normal_array({10}, 3)});
  compare_kernels(std::make_shared<Linear>(),
                  {normal_array({40, 20}, 1), normal_array({1, 20}, 2), normal_array({1}, 3)});
}

}  // namespace
}  // namespace purine
