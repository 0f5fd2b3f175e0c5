// The guest's second face: linked as `sudo` inside a sandbox where everything runs as root already, it runs
// the command as it is. It grants nothing.
#pragma once

int sudo_main(int argc, char **argv); // returns the exit status of a failure; on success it does not return
