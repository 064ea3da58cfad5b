// Trains LeNet on Fashion-MNIST: a whole program. Arguments: the folder of the data, and the number of steps.
#include <fmt/core.h>
#include <purine/purine.h>

#include <cstdlib>

using namespace purine;

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 300;

  Graph g;
  const auto [image, label] = data::idx(g, folder, {.batch = 64, .seed = 1});
  const Tensor logits = models::lenet(image, 10);
  const Tensor loss = ops::softmax_cross_entropy(logits, label);
  optim::momentum(loss, {.learning_rate = 0.02});  // adds gradients, velocities and updates; watches the loss

  Runtime runtime;              // this process's devices
  Session session(runtime, g);  // freezes, plans memory, binds kernels: what is wrong is said here
  for (const Step& step : session.run({.steps = steps})) {
    if (step.index % 50 == 0) fmt::print("step {}: loss {:.3f}\n", step.index, step.value(loss));
  }
  io::save_safetensors("lenet.safetensors", session.variables().values());
  fmt::print("saved lenet.safetensors: {} planned\n",
             fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(session.peak_bytes())));
}
