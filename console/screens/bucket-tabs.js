import { html } from '../lib/html.js'
import { linkTo, route } from '../lib/router.js'

const TABS = [
  ['objects', 'Objects'],
  ['pending', 'Uploads in progress'],
  ['settings', 'Settings'],
]

/** The screens of one bucket. */
export function BucketTabs({ bucket }) {
  const { path } = route.value
  return html`<nav aria-label="Bucket" class="tabs">
    <ul>
      ${TABS.map(([name, text]) => {
        const href = linkTo(['buckets', bucket, name])
        return html`<li><a href=${href} aria-current=${href === `#${path}` ? 'page' : undefined}>${text}</a></li>`
      })}
    </ul>
  </nav>`
}
