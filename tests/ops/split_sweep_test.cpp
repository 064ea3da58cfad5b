// Every way to divide every operator: the pieces together are the whole.
#include "tests/ops/sweep.h"

namespace purine::test {
namespace {

/// Where pieces begin and end: two or three of them, of different sizes where there are units for it.
std::vector<std::int64_t> bounds_of(std::int64_t units) {
  if (units == 2) return {0, 1, 2};
  return {0, 1, 1 + (units - 1) / 3 + (units > 3 ? 1 : 0), units};
}

/// The pieces' results of one output, put together.
Array combine(int how, const std::vector<Array>& pieces) {
  if (how >= 0) return Array::concatenate(pieces, how);
  if (how == SplitRule::whole) return pieces[0];
  Array sum = pieces[0];
  for (std::size_t k = 1; k < pieces.size(); ++k) {
    for (std::int64_t i = 0; i < sum.elements(); ++i) sum.set(i, sum.at(i) + pieces[k].at(i));
  }
  return sum;
}

TEST(SplitSweep, PiecesAreTheWhole) {
  for_each_sample([](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f64);
    const std::vector<TensorInfo> infos = sample_infos(sample, DType::f64);
    const std::vector<Array> inputs = draw_inputs(sample, infos);
    const std::vector<Array> whole = run_operator(contract, inputs);
    int number = 0;
    for (const SplitRule& rule : contract->split_rules(infos)) {
      SCOPED_TRACE("rule " + std::to_string(number++));
      if (rule.units < 2) continue;
      const std::vector<std::int64_t> bounds = bounds_of(rule.units);
      std::vector<std::vector<Array>> results(whole.size());
      for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
        if (bounds[k] == bounds[k + 1]) continue;
        const ContractPtr piece = contract->piece(rule, {bounds[k], bounds[k + 1], rule.units}, infos);
        ASSERT_EQ(piece->type(), contract->type());
        const std::vector<Array> outputs =
            run_operator(piece, piece_inputs(rule, inputs, bounds[k], bounds[k + 1]));
        ASSERT_EQ(outputs.size(), whole.size());
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          results[i].push_back(outputs[i]);
          if (rule.outputs[i] != SplitRule::whole || rule.approximate) continue;
          expect_close(outputs[i], whole[i], tolerance(*contract, infos, whole[i], DType::f64),
                       "output " + std::to_string(i) + ", which every piece has");
        }
      }
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const Array combined = combine(rule.outputs[i], results[i]);
        ASSERT_EQ(combined.shape().text(), whole[i].shape().text());
        if (rule.approximate) continue;
        expect_close(combined, whole[i], tolerance(*contract, infos, whole[i], whole[i].dtype()),
                     "output " + std::to_string(i));
      }
    }
  });
}

TEST(SplitSweep, OtherSizesAreTheSameOperator) {
  for_each_sample([](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f32);
    const std::vector<TensorInfo> infos = sample_infos(sample, DType::f32);
    const std::vector<TensorInfo> outputs = contract->infer(infos);
    const std::vector<SplitRule> rules = contract->split_rules(infos);
    for (std::size_t number = 0; number < rules.size(); ++number) {
      const SplitRule& rule = rules[number];
      if (rule.units == 0) continue;
      SCOPED_TRACE("rule " + std::to_string(number));
      for (const std::int64_t units : {rule.units * 3, rule.units + 1, std::int64_t{1}}) {
        const ContractPtr other = contract->piece(rule, {0, units, units}, infos);
        const std::vector<TensorInfo> other_infos = resized_infos(rule, infos, units);
        const std::vector<TensorInfo> other_outputs = other->infer(other_infos);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          TensorInfo expected = outputs[i];
          if (rule.outputs[i] >= 0) {
            expected.shape.set(rule.outputs[i], expected.shape[rule.outputs[i]] / rule.units * units);
          }
          EXPECT_EQ(other_outputs[i].text(), expected.text());
        }
        // Back at the old size, it is the old operator, where it may still be divided in this way (with 1
        // unit, a grouped convolution has become an ordinary one).
        for (const SplitRule& back : other->split_rules(other_infos)) {
          if (back.units != units || back.inputs != rule.inputs || back.outputs != rule.outputs) continue;
          EXPECT_EQ(other->piece(back, {0, rule.units, rule.units}, other_infos)->attributes(),
                    contract->attributes());
        }
      }
    }
  });
}

}  // namespace
}  // namespace purine::test
