import { html } from '../../lib/html.js'
import { encryption } from './encryption.js'
import { lock } from './lock.js'
import { SettingsPage } from './page.js'
import { PlainObjects } from './plain-objects.js'
import { CountedClasses, quota } from './quota.js'
import { Setting } from './setting.js'
import { tags } from './tags.js'
import { versioning } from './versioning.js'

/** How a bucket keeps its objects. */
export function General({ params: { bucket } }) {
  return html`<${SettingsPage} bucket=${bucket} name="General">
    <${Setting} bucket=${bucket} kind=${versioning} />
    <${Setting} bucket=${bucket} kind=${lock} />
    <${Setting} bucket=${bucket} kind=${encryption}><${PlainObjects} bucket=${bucket} /><//>
    <${Setting} bucket=${bucket} kind=${quota} />
    <${CountedClasses} bucket=${bucket} />
    <${Setting} bucket=${bucket} kind=${tags} />
  <//>`
}
