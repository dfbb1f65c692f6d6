import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Tabs } from '../parts/tabs.js'

export const BUCKET_TABS = [
  ['objects', 'Objects'],
  ['pending', 'Uploads in progress'],
  ['settings', 'Settings'],
]

/** The screens of one bucket. */
export function BucketTabs({ bucket }) {
  const links = BUCKET_TABS.map(([name, text]) => ({
    href: linkTo(['buckets', bucket, name]),
    text,
    above: true,
  }))
  return html`<${Tabs} label="Bucket" links=${links} />`
}
