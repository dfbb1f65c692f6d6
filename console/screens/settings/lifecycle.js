import { html, useState } from '../../lib/html.js'
import { LifecyclePasses } from './lifecycle-passes.js'
import { lifecycle } from './lifecycle-rules.js'
import { SettingsPage } from './page.js'
import { Setting } from './setting.js'

/** What becomes of the objects of a bucket with time: the rules, and what they have done. */
export function Lifecycle({ params: { bucket } }) {
  const [turn, setTurn] = useState(0)
  return html`<${SettingsPage} bucket=${bucket} name="Lifecycle">
    <${Setting} bucket=${bucket} kind=${lifecycle} saved=${() => setTurn(turn + 1)} />
    <${LifecyclePasses} key=${turn} bucket=${bucket} />
  <//>`
}
