import { html } from '../../lib/html.js'
import { Inventories } from './inventory.js'
import { logging } from './logging.js'
import { notifications } from './notifications.js'
import { SettingsPage } from './page.js'
import { Setting } from './setting.js'

/** What a bucket tells others about its objects. */
export function Events({ params: { bucket } }) {
  return html`<${SettingsPage} bucket=${bucket} name="Events">
    <${Setting} bucket=${bucket} kind=${notifications} />
    <${Setting} bucket=${bucket} kind=${logging} />
    <${Inventories} bucket=${bucket} />
  <//>`
}
