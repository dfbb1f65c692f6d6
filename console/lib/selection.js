// What was selected in a list of objects, for a screen that has an address of its own. It is gone with the page.
import { signal } from './html.js'

/** { bucket, items: [{ name, folder? }] }, or undefined. */
export const selection = signal(undefined)
