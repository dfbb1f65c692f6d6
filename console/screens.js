// Every screen, in the order of the navigation. A screen is { path, View, nav?, Footer? }: `nav` is its name in the
// navigation, `Footer` is shown below all screens.
import { screens as buckets } from './screens/buckets.js'
import { screens as object } from './screens/object.js'
import { screens as objects } from './screens/objects.js'

export const screens = [...buckets, ...objects, ...object]
