// One network over two emulated accelerators: the first half on one, the second half on the other. Copies are
// the only operators that cross; the rest of the graph doesn't know. The weights come out the same as on one
// device, bit by bit.
#include <fmt/core.h>
#include <purine/purine.h>

#include <cstring>
#include <vector>

using namespace purine;

namespace {

/// Trains a small network whose halves lie at two locations, which may be one; gives all variables.
std::vector<io::HostTensor> train_over(Location first, Location second) {
  Graph g;
  const auto [image, label] = data::synthetic(g, {.batch = 32, .image = {1, 12, 12}, .classes = 10});
  Tensor x = ops::copy(image, first);
  {
    const auto here = g.at(first);
    x = ops::relu(nn::conv2d(x, 16, 3, {}, "conv"));
  }
  x = ops::copy(x, second);
  const auto here = g.at(second);
  const Tensor logits = nn::linear(ops::flatten(x), 10, {}, "classifier");
  const Tensor loss = ops::softmax_cross_entropy(logits, ops::copy(label, second));
  optim::momentum(loss, {.learning_rate = 0.05});  // each gradient and update lies where its weight does

  Runtime runtime({.devices = parse_devices("emu:0-1")});
  Session session(runtime, g);
  for (const Step& step : session.run({.steps = 20})) {
    if (step.index == 19)
      fmt::print("{} and {}: loss {:.4f}\n", first.text(), second.text(), step.value(loss));
  }
  return session.variables().values();
}

}  // namespace

int main() {
  const Location one = Location::parse("emu:0");
  const Location other = Location::parse("emu:1");
  const bool same = train_over(one, one) == train_over(one, other);
  fmt::print("the same weights, bit by bit: {}\n", same ? "yes" : "no");
  return same ? 0 : 1;
}
