#include <string>
#include <utility>
#include <vector>

#include "purine/train/job_keys_helpers.h"
#include "purine/train/schemes.h"

namespace purine::train {

using enum OnResume;

std::vector<JobKey> parallel_keys() {
  using Parallel = Job::Parallel;
  std::vector<std::string> schemes = {"auto"};
  for (const Scheme& scheme : all_schemes()) schemes.emplace_back(scheme.name);
  return {
      {.section = "parallel",
       .name = "scheme",
       .help =
           "How the devices share the work: see docs/distributed.md. `auto` is `single` on one device and "
           "`data` on several.",
       .member = member(&Job::parallel, &Parallel::scheme),
       .choices = std::move(schemes),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "devices",
       .help = "The devices, as in `cpu:0-1`, `emu:0-7` or `cpu:0,emu:1`; empty: `cpu:0`. Over several "
               "processes they are those of each; `0/cpu:0,1/emu:0-1` names them with their ranks. "
               "`--devices` counts before it.",
       .member = member(&Job::parallel, &Parallel::devices),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "mesh",
       .help =
           "How the devices lie in a grid, as in `data=2,model=4`; the last axis varies fastest. Empty: all "
           "of them along the scheme's own axis: `model` for `tensor`, `stage` for `pipeline`, `data` for "
           "the "
           "others.",
       .member = member(&Job::parallel, &Parallel::mesh),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "shares",
       .help =
           "How the samples are divided along the axis `data`, in whole numbers: `[3, 1]` gives the first "
           "device three samples of four. Empty: evenly.",
       .member = member(&Job::parallel, &Parallel::shares),
       .range = between(1, 1 << 20),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "all_reduce",
       .help =
           "How gradients are summed: all by one device, each by a share of each device (`sharded`), around "
           "a ring, or along a tree. `auto` takes the cheapest, tensor by tensor.",
       .member = member(&Job::parallel, &Parallel::all_reduce),
       .choices = {"auto", "central", "sharded", "ring", "tree"},
       .on_resume = may_change},
      {.section = "parallel",
       .name = "gradient_format",
       .help =
           "In which format gradients are sent to be summed: as they are, or as two bytes a number, which "
           "halves what a slow network carries. `f16` rounds to 2^-11 of a number and overflows above "
           "65504, `bf16` rounds to 2^-8 of it. Those two only with `all_reduce = \"auto\"`.",
       .member = member(&Job::parallel, &Parallel::gradient_format),
       .choices = {"f32", "f16", "bf16"},
       .on_resume = may_change},
      {.section = "parallel",
       .name = "update",
       .help = "Scheme `data`: all devices update all variables, or each variable is updated by one device, "
               "which sends it to the others.",
       .member = member(&Job::parallel, &Parallel::update),
       .choices = {"everywhere", "one_each"},
       .on_resume = may_change},
      {.section = "parallel",
       .name = "output_layers",
       .help =
           "Schemes `tensor` and `hybrid`: layers of which each device makes some of the output's channels. "
           "With neither these nor `input_layers`, the fully connected layers are divided in turn.",
       .member = member(&Job::parallel, &Parallel::output_layers),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "input_layers",
       .help =
           "Schemes `tensor` and `hybrid`: layers of which each device takes some of the input's channels.",
       .member = member(&Job::parallel, &Parallel::input_layers),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "micro_batches",
       .help = "Scheme `pipeline`: into how many parts a batch is cut, which follow each other through the "
               "stages; 0: twice as many as there are stages.",
       .member = member(&Job::parallel, &Parallel::micro_batches),
       .range = between(0, 1 << 20),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "stage_shares",
       .help =
           "Scheme `pipeline`: how much of the work each stage has: `[2, 1]` gives the first twice as much "
           "as the second. Empty: all the same.",
       .member = member(&Job::parallel, &Parallel::stage_shares),
       .range = between(1e-3, 1e6),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "bucket_kib",
       .help = "Small gradients are summed several at a time, in buckets of at most so many KiB: those of at "
               "most a quarter of it. 0: each by itself.",
       .member = member(&Job::parallel, &Parallel::bucket_kib),
       .range = between(0, 1 << 20),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "synchronized_batch_normalization",
       .help = "Batch normalisation takes the statistics of all samples, which costs communication in every "
               "such layer; otherwise each device takes those of its own samples.",
       .member = member(&Job::parallel, &Parallel::synchronized_batch_normalization),
       .on_resume = may_change},
      {.section = "parallel",
       .name = "stall_limit",
       .help = "Over several processes: the run fails when nothing was heard of one for so many seconds. One "
               "that is only slow is heard, and waited for.",
       .member = member(&Job::parallel, &Parallel::stall_limit),
       .range = between(1, 86400),
       .on_resume = may_change},
  };
}

std::vector<JobKey> emulated_keys() {
  using Emulated = Job::Emulated;
  return {
      {.section = "emulated",
       .name = "memory_gib",
       .help = "Memory of each emulated device (`emu:0`), in GiB; what a step needs more of is refused.",
       .member = member(&Job::emulated, &Emulated::memory_gib),
       .range = between(1e-3, 1024),
       .on_resume = may_change},
      {.section = "emulated",
       .name = "copy_gb_per_s",
       .help = "What its copies carry, in GB (of 10^9 bytes) a second: each way by itself.",
       .member = member(&Job::emulated, &Emulated::copy_gb_per_s),
       .range = between(1e-6, 1e6),
       .on_resume = may_change},
      {.section = "emulated",
       .name = "copy_us",
       .help = "What each copy takes besides, in microseconds.",
       .member = member(&Job::emulated, &Emulated::copy_us),
       .range = between(0, 1e7),
       .on_resume = may_change},
  };
}

}  // namespace purine::train
