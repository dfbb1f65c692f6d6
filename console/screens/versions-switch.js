import { html } from '../lib/html.js'
import { goTo } from '../lib/router.js'

/** Changes between the current objects below a prefix and all their versions. @param on true for all versions */
export function VersionsSwitch({ bucket, prefix, on }) {
  const change = () => goTo(['buckets', bucket, on ? 'objects' : 'versions'], { prefix })
  return html`<label class="inline">
    <input type="checkbox" role="switch" checked=${on} onChange=${change} />
    Show versions and deleted
  </label>`
}
