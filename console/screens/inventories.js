import { sendJson, sendXml } from '../lib/api.js'
import { formatBytes, formatCount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { readText } from '../lib/s3-text.js'
import { session } from '../lib/session.js'
import { pathOf } from '../lib/signer.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Loaded, useLoaded, usePolling } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { BucketTabs, pathTo } from './bucket-tabs.js'

/** Largest manifest that is read. */
const MAX_MANIFEST = 1024 * 1024

/** The inventories of a bucket, each with its last run and the files of it. */
export function Inventories({ params: { bucket } }) {
  const client = session.value
  const all = useLoaded((signal) => read(client, bucket, signal), [client, bucket])
  const [asked, setAsked] = useState()
  usePolling(
    all.value?.some(({ RunningJobId }) => RunningJobId),
    [all],
  )
  const settings = html`<a class="button" href=${linkTo(['buckets', bucket, 'settings', 'events'])}>Settings</a>`
  const actions = html`<button type="button" onClick=${all.reload}>Refresh</button>${settings}`
  return html`<${Crumbs} links=${pathTo(bucket, '')} />
    <${Page} title=${`Inventories of ${bucket}`} heading=${html`Inventories of <${Name} text=${bucket} />`} actions=${actions}>
    <${BucketTabs} bucket=${bucket} />
    <${Loaded}
      of=${all}
      show=${(inventories) =>
        inventories.length === 0
          ? html`<${Empty} title="This bucket has no inventory." actions=${settings}>An inventory is a list of all objects in files that other programs read, every day or week. Its configuration is among the settings.<//>`
          : inventories.map((one) => html`<${Inventory} key=${one.Id} of=${one} onRun=${() => setAsked(one)} />`)}
    />
    ${asked && html`<${RunNow} bucket=${bucket} of=${asked} done=${all.reload} onClose=${() => setAsked(undefined)} />`}
  <//>`
}

/** What the server says of the last runs, and S3 of the targets. */
async function read(client, bucket, signal) {
  const [{ Inventories: states }, root] = await Promise.all([
    sendJson(client, { path: pathOf(bucket), query: { 'x-inventory': '', 'max-items': 1000 }, signal }),
    sendXml(client, { bucket, query: { inventory: '' }, signal }),
  ])
  return states.map((state) => {
    const configuration = root.all('InventoryConfiguration').find((one) => one.get('Id') === state.Id)
    const target = configuration?.child('Destination')?.child('S3BucketDestination')
    return {
      ...state,
      Frequency: configuration?.get('Schedule', 'Frequency'),
      Prefix: configuration?.get('Filter', 'Prefix'),
      Versions: configuration?.get('IncludedObjectVersions'),
      Format: target?.get('Format'),
      Target: target?.get('Bucket')?.replace(/^arn:[^:]*:s3:::/, ''),
    }
  })
}

function Inventory({ of, onRun }) {
  const { Id, Target, Manifest, Format } = of
  return html`<section>
    <h2><${Name} text=${Id} /></h2>
    <div class="buttons">
      <button type="button" onClick=${onRun} aria-label=${`Write it now… ${Id}`}>Write it now…</button>
      ${Manifest && Format === 'CSV' && html`<a class="button" href=${linkTo(['batch', 'new'], { bucket: Target, manifest: Manifest })}>Batch job of its objects</a>`}
    </div>
    <${Facts}
      facts=${[
        [
          'Last run',
          of.LastStatus ? html`<${State} of=${of.LastStatus} /> <${Time} of=${of.LastEnded} />` : 'none yet',
        ],
        ['Failed because', of.FailureMessage && `${of.FailureMessage} (${of.FailureCode})`],
        ['Now', of.RunningJobId && html`<a href=${linkTo(['jobs', of.RunningJobId])}>it is being written</a>`],
        ['Next', of.Enabled ? html`<${Time} of=${of.NextDue} />` : 'never: it is off'],
        [
          'Written',
          [
            of.Frequency === 'Weekly' ? 'every week' : 'every day',
            of.Format,
            of.Versions === 'All' ? 'all versions' : 'current versions',
          ]
            .filter(Boolean)
            .join(', '),
        ],
        ['Only keys that begin with', of.Prefix],
        ['Into', Target && html`<a href=${linkTo(['buckets', Target, 'objects'])}><${Name} text=${Target} /></a>`],
        ['With the rights of', of.SetBy],
        ['Objects in it', of.Rows === undefined ? undefined : of.Rows.toLocaleString()],
        ['Job', of.LastJobId && html`<a href=${linkTo(['jobs', of.LastJobId])}>of the last run</a>`],
      ]}
    />
    ${Manifest && Target && html`<${Folded} title=${`${formatCount(of.Files ?? 0, 'file')} of the last run`}><${Files} bucket=${Target} manifest=${Manifest} /><//>`}
  </section>`
}

function Files({ bucket, manifest }) {
  const client = session.value
  const files = useLoaded(
    async (signal) => {
      const { text, whole } = await readText(client, bucket, manifest, { bytes: MAX_MANIFEST }, signal)
      if (!whole) throw new Error('The manifest is larger than 1 MiB: open it as an object.')
      return [{ key: manifest }, ...JSON.parse(text).files]
    },
    [client, bucket, manifest],
  )
  const columns = [
    {
      name: 'File',
      rest: true,
      cell: ({ key }) => html`<a href=${linkTo(['buckets', bucket, 'object'], { key })}><${Middle} text=${key} /></a>`,
    },
    { name: 'Size', number: true, cell: ({ size }) => size !== undefined && formatBytes(size) },
  ]
  return html`<${Loaded} of=${files} show=${(rows) => html`<${Table} caption="Files of the inventory" rows=${rows} keyOf=${({ key }) => key} columns=${columns} />`} />`
}

function RunNow({ bucket, of: { Id, Target }, done, onClose }) {
  const run = async (signal) => {
    const request = { path: pathOf(bucket), query: { 'x-inventory': '' }, json: { Id }, signal }
    const { JobId } = await sendJson(session.value, { ...request, headers: { prefer: 'wait=2' } })
    notify(`The inventory ${Id} is being written by the job ${JobId}.`)
    done()
  }
  return html`<${Confirm} title="Write an inventory now" submit="Write it" action=${run} onClose=${onClose}>
    <p>The bucket is listed with your rights, and the files are stored in the bucket <${Name} text=${Target} />. The schedule stays as it is.</p>
  <//>`
}
