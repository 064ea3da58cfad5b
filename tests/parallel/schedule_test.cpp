#include "purine/parallel/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purine::parallel {
namespace {

/// `F0 F1 B0 …` of one stage.
std::string of_stage(const std::vector<Task>& tasks, int stage) {
  std::string text;
  for (const Task& task : tasks) {
    if (task.stage != stage) continue;
    const char* phase = task.phase == Phase::forward ? "F" : task.phase == Phase::backward ? "B" : "W";
    text += (text.empty() ? "" : " ") + (phase + std::to_string(task.micro_batch));
  }
  return text;
}

TEST(ScheduleTest, TwoStages) {
  const std::vector<Task> tasks = one_forward_one_backward(2, 3);
  EXPECT_EQ(of_stage(tasks, 0), "F0 F1 B0 F2 W0 B1 W1 B2 W2");
  EXPECT_EQ(of_stage(tasks, 1), "F0 B0 F1 W0 B1 F2 W1 B2 W2");
}

TEST(ScheduleTest, FewerMicroBatchesThanStages) {
  EXPECT_EQ(of_stage(one_forward_one_backward(4, 1), 0), "F0 B0 W0");
  EXPECT_EQ(of_stage(one_forward_one_backward(4, 2), 1), "F0 F1 B0 W0 B1 W1");
}

TEST(ScheduleTest, FollowsTheDataAndBoundsWhatIsInFlight) {
  for (const int stages : {1, 2, 3, 4, 7}) {
    for (const int micro_batches : {1, 2, 5, 16}) {
      SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(micro_batches) + " micro-batches");
      std::map<std::pair<Phase, int>, int> done;  // micro-batches, by phase and stage
      for (const Task& task : one_forward_one_backward(stages, micro_batches)) {
        const int before = done[{task.phase, task.stage}]++;
        ASSERT_EQ(before, task.micro_batch);
        if (task.phase == Phase::forward && task.stage > 0) {
          EXPECT_GT((done[{Phase::forward, task.stage - 1}]), before);
        }
        if (task.phase == Phase::backward) {
          EXPECT_GT((done[{Phase::forward, task.stage}]), before);
          if (task.stage + 1 < stages) {
            EXPECT_GT((done[{Phase::backward, task.stage + 1}]), before);
          }
        }
        if (task.phase == Phase::weight_gradient) {
          EXPECT_GT((done[{Phase::backward, task.stage}]), before);
        }
        const int forwards = done[{Phase::forward, task.stage}];
        EXPECT_LE((forwards - done[{Phase::backward, task.stage}]), stages - task.stage);
        // Activations are held one micro-batch longer, for the gradients of weights.
        EXPECT_LE((forwards - done[{Phase::weight_gradient, task.stage}]), stages - task.stage + 1);
      }
      for (int stage = 0; stage < stages; ++stage) {
        for (const Phase phase : {Phase::forward, Phase::backward, Phase::weight_gradient}) {
          EXPECT_EQ((done[{phase, stage}]), micro_batches);
        }
      }
    }
  }
}

TEST(ScheduleTest, ForwardAndBackwardAlternateInBetween) {
  const std::vector<Task> tasks = one_forward_one_backward(4, 9);
  for (int stage = 0; stage < 4; ++stage) {
    std::string text = of_stage(tasks, stage);
    text.erase(std::remove_if(text.begin(), text.end(),
                              [](unsigned char c) { return std::isdigit(c) != 0 || c == ' ' || c == 'W'; }),
               text.end());
    const auto first = static_cast<std::size_t>(4 - stage);
    std::string expected(first, 'F');
    for (std::size_t i = 0; i < 9; ++i) expected += i + first < 9 ? "BF" : "B";
    EXPECT_EQ(text, expected);
  }
}

}  // namespace
}  // namespace purine::parallel
