import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { Name } from '../parts/name.js'
import { Tabs } from '../parts/tabs.js'

export const BUCKET_TABS = [
  ['objects', 'Objects'],
  ['pending', 'Uploads in progress'],
  ['inventories', 'Inventories'],
  ['access-log', 'Access log'],
  ['settings', 'Settings'],
]

/** The pages of its settings. */
export const SETTINGS_TABS = [
  [undefined, 'General'],
  ['access', 'Access'],
  ['lifecycle', 'Lifecycle'],
  ['deals', 'Deals'],
  ['events', 'Events'],
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

/** Links to the folders that lead to this one. */
export function pathTo(bucket, folder) {
  const link = (text, prefix) => ({
    text: html`<${Name} text=${text} />`,
    href: linkTo(['buckets', bucket, 'objects'], { prefix }),
  })
  const parts = folder.split('/').slice(0, -1)
  return [
    { text: 'Buckets', href: linkTo(['buckets']) },
    link(bucket),
    ...parts.map((part, i) => link(part || '/', `${parts.slice(0, i + 1).join('/')}/`)),
  ]
}
