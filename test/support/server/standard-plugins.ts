import accounts from '../../../plugins/accounts/index.js'
import activity from '../../../plugins/activity/index.js'
import batch from '../../../plugins/batch/index.js'
import encryption from '../../../plugins/encryption/index.js'
import inventory from '../../../plugins/inventory/index.js'
import keys from '../../../plugins/keys/index.js'
import lifecycle from '../../../plugins/lifecycle/index.js'
import notifications from '../../../plugins/notifications/index.js'
import quota from '../../../plugins/quota/index.js'
import requests from '../../../plugins/requests/index.js'
import self from '../../../plugins/self/index.js'
import upkeep from '../../../plugins/upkeep/index.js'
import usage from '../../../plugins/usage/index.js'
import zip from '../../../plugins/zip/index.js'
import type { Plugin } from '../../../src/api/plugin.js'

export interface StandardOptions {
  readonly batch?: Parameters<typeof batch>[0]
  readonly notifications?: Parameters<typeof notifications>[0]
  readonly inventory?: Parameters<typeof inventory>[0]
  readonly upkeep?: Parameters<typeof upkeep>[0]
}

/**
 * The plugins that the command line always runs, for a proxy of a test. None in the suite of the door, which
 * `DEALGATE_TEST_PLUGINS=none` stands for.
 */
export function standardPlugins(options: StandardOptions = {}): readonly Plugin[] {
  if (process.env.DEALGATE_TEST_PLUGINS === 'none') return []
  return [
    notifications(options.notifications),
    batch(options.batch),
    inventory(options.inventory),
    quota(),
    encryption(),
    self(),
    keys(),
    accounts(),
    activity(),
    upkeep(options.upkeep),
    usage(),
    zip(),
    lifecycle(),
    requests(),
  ]
}
