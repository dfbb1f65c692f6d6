import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Tabs } from '../parts/tabs.js'

export const BUCKET_TABS = [
  ['objects', 'Objects'],
  ['pending', 'Uploads in progress'],
  ['settings', 'Settings'],
  ['lifecycle', 'Lifecycle'],
  ['inventories', 'Inventories'],
  ['access-log', 'Access log'],
]

/** The screens of one bucket. */
export function BucketTabs({ bucket }) {
  const link = (name) => linkTo(['buckets', bucket, name])
  const links = BUCKET_TABS.map(([name, text]) => ({
    ...{ href: link(name), text, above: true },
    // The versions are another view of the objects.
    ...(name === 'objects' && { also: link('versions') }),
  }))
  return html`<${Tabs} label="Bucket" links=${links} />`
}
