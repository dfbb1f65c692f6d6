import { html } from '../../lib/html.js'
import { linkTo } from '../../lib/router.js'
import { Name } from '../../parts/name.js'
import { Crumbs, Page } from '../../parts/page.js'
import { Tabs } from '../../parts/tabs.js'
import { BucketTabs, pathTo, SETTINGS_TABS } from '../bucket-tabs.js'

/** One of the five pages of the settings of a bucket. @param name its title in the tabs */
export function SettingsPage({ bucket, name, children }) {
  const links = SETTINGS_TABS.map(([page, text]) => ({
    href: linkTo(['buckets', bucket, 'settings', page].filter(Boolean)),
    text,
  }))
  return html`<${Crumbs} links=${pathTo(bucket, '')} />
    <${Page} title=${`${name}: settings of ${bucket}`} heading=${html`Settings of <${Name} text=${bucket} />`}>
      <${BucketTabs} bucket=${bucket} />
      <${Tabs} label="Settings" links=${links} />
      ${children}
    <//>`
}
