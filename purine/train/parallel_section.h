// A job's section [parallel], made out.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "purine/core/location.h"
#include "purine/parallel/mesh.h"
#include "purine/parallel/partition.h"
#include "purine/train/job_file.h"
#include "purine/train/schemes.h"

namespace purine::train {

/// How a job's devices share the work.
struct ParallelSetup {
  const Scheme* scheme;  ///< `auto` has become one of the others
  parallel::Mesh mesh;   ///< of all the job's devices
  LoadedJob loaded;      ///< the job, for its other keys and for messages

  bool is_divided() const { return mesh.size() > 1; }
  const std::vector<Location>& devices() const { return mesh.locations(); }
  /// `data parallelism over emu:0-3 (data=4)`, `… over cpu:0 at each of 2 ranks (data=2)`; one device alone
  /// is just that: `cpu:0`.
  std::string text() const;
  /// Divides a graph that was built for one device. The graph must outlive the result. Names of layers that
  /// the graph doesn't have are errors of the job.
  parallel::Partitioned divide(Graph& graph) const;
  parallel::PartitionOptions partition_options() const;
};

/// Makes the section out for a run of so many processes; 0: of as many as its devices name. Devices that are
/// named without ranks are those of every rank, in the order of the ranks. Throws Error("job", …) at the
/// place of a key that doesn't fit the scheme, the mesh, the devices or the ranks.
ParallelSetup parallel_setup(const LoadedJob& loaded, int ranks = 0);

/// Where a scheme was set beside the file, as `parallel.scheme` in `set_beside`, what the file says for
/// another scheme is left out: its keys, a mesh whose axes are not the scheme's, and shares of such a mesh.
void leave_out_of_other_schemes(LoadedJob& loaded, const std::set<std::string>& set_beside);

/// The job with other devices, from `origin` (`--devices emu:0-1`). With one device the rest of the section
/// is dropped: whatever it says, there is nothing to divide.
LoadedJob with_devices(LoadedJob loaded, const std::string& devices, const std::string& origin,
                       int ranks = 0);

/// A list of devices as parse_devices reads it: `emu:0-3`, `cpu:0,emu:1`, `1/cpu:0`.
std::string devices_text(const std::vector<Location>& devices);
/// Those of a rank, as it names them itself: `emu:0-3`.
std::string local_devices_text(const std::vector<Location>& devices, std::int32_t rank);

}  // namespace purine::train
