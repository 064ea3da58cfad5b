// The command `purine`.
#include "purine/cli/commands.h"

int main(int argc, char** argv) {
  return purine::cli::run_command(argc, argv);
}
