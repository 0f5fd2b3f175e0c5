// Figures of the product policy that more than one layer needs. Changing one changes what users were promised.
#pragma once

#define SANDBOX_IDLE_MS (24LL * 3600 * 1000)           // a sandbox ends after this long without a tool call
#define WORKSPACE_RETAIN_MS (30LL * 24 * 3600 * 1000)  // a managed workspace waits this long, unbound, for its move to the trash
#define TOMBSTONE_KEEP_MS (30LL * 24 * 3600 * 1000)    // a removed record stays readable by uid
