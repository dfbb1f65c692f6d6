import { html } from '../../lib/html.js'
import { lifecycle } from './lifecycle-rules.js'
import { SettingsPage } from './page.js'
import { Setting } from './setting.js'

/** What becomes of the objects of a bucket with time. */
export function Lifecycle({ params: { bucket } }) {
  return html`<${SettingsPage} bucket=${bucket} name="Lifecycle">
    <${Setting} bucket=${bucket} kind=${lifecycle} />
  <//>`
}
