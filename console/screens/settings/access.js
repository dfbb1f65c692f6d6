import { html } from '../../lib/html.js'
import { acl } from './bucket-acl.js'
import { cors } from './cors.js'
import { ownership } from './ownership.js'
import { SettingsPage } from './page.js'
import { policy } from './policy.js'
import { PublicState, publicAccessBlock, useIsPublic } from './public-access.js'
import { Setting } from './setting.js'
import { website } from './website.js'
import { WhoMay } from './who-may.js'

/** Who may use a bucket, and from where. */
export function Access({ params: { bucket } }) {
  const isPublic = useIsPublic(bucket)
  const of = (kind, children) =>
    html`<${Setting} bucket=${bucket} kind=${kind} saved=${isPublic.reload}>${children}<//>`
  return html`<${SettingsPage} bucket=${bucket} name="Access">
    <${PublicState} of=${isPublic} />
    ${of(policy, html`<${WhoMay} bucket=${bucket} />`)}
    ${of(publicAccessBlock)}
    ${of(acl)}
    ${of(ownership)}
    ${of(cors)}
    ${of(website)}
  <//>`
}
