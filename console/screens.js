// Every screen, in the order of the navigation. A screen is { path, View, nav?, Footer? }: `nav` is its name in the
// navigation, `Footer` is shown below all screens.
import { screens as archive } from './screens/archive.js'
import { screens as buckets } from './screens/buckets.js'
import { screens as calls } from './screens/calls.js'
import { screens as deals } from './screens/deals.js'
import { screens as jobs } from './screens/jobs.js'
import { screens as object } from './screens/object.js'
import { screens as objects } from './screens/objects.js'
import { screens as overview } from './screens/overview.js'
import { screens as pending } from './screens/pending.js'
import { screens as server } from './screens/server.js'
import { screens as settings } from './screens/settings.js'
import { screens as uploads } from './screens/uploads.js'

export const screens = [
  ...buckets,
  ...objects,
  ...object,
  ...pending,
  ...settings,
  ...uploads,
  ...archive,
  ...deals,
  ...jobs,
  ...overview,
  ...calls,
  ...server,
]
