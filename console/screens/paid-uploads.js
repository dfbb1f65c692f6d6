import { sendJson } from '../lib/api.js'
import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Copied } from '../parts/copy.js'
import { Empty } from '../parts/empty.js'
import { Known } from '../parts/known.js'
import { useLoaded } from '../parts/load.js'
import { Middle } from '../parts/name.js'
import { Page } from '../parts/page.js'
import { Filters, PageLinks, usePages, Words } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Tabs } from '../parts/tabs.js'
import { Bytes, Time } from '../parts/time.js'
import { PayUpload } from './pay-upload.js'
import { SaveCsv, TABS, withWallet } from './wallet.js'

/** Uploads of the wallet, with what became of them. */
export function PaidUploads({ query }) {
  const file = query.get('file') || undefined
  const uploads = usePages({ path: '/-/pay/v1/uploads', query: { 'max-items': 100, 'file-name': file } }, 'Uploads')
  const client = session.value
  const wallet = useLoaded((signal) => sendJson(client, { path: '/-/pay/v1/wallet', signal }), [client])
  const [pays, setPays] = useState()
  const choice = {
    name: 'Choice',
    bare: true,
    cell: (upload) =>
      upload.Status === 'Pending' &&
      html`<button type="button" aria-label=${`Pay the upload ${upload.SourceFileUploadId}`} onClick=${() => setPays(upload)}>Pay…</button>`,
  }
  const actions = html`<button type="button" onClick=${uploads.reload}>Refresh</button>${uploads.value && html`<${SaveCsv} name="uploads.csv" />`}`
  return html`<${Page} title="Uploads to IPFS" actions=${actions}>
    <${Tabs} label="Payments" links=${TABS} />
    ${withWallet(
      wallet,
      uploads,
      ({
        rows,
        next,
      }) => html`<${Filters} query=${query} to=${['payments', 'uploads']}><${Words} label="File contains" name="file" value=${file ?? ''} /><//>
        <${Table} caption="Uploads" rows=${rows} keyOf=${({ SourceFileUploadId }) => SourceFileUploadId} columns=${[...columns.slice(0, 2), choice, ...columns.slice(2)]} empty=${file ? 'There is no such upload.' : html`<${NoUploads} />`} />
        <${PageLinks} next=${next} />`,
    )}
    ${pays && html`<${PayUpload} id=${pays.SourceFileUploadId} name=${pays.FileName} done=${uploads.reload} onClose=${() => setPays(undefined)} />`}
  <//>`
}

function NoUploads() {
  return html`<${Empty} title="This wallet has no upload yet." actions=${html`<a class="button" href="#/buckets">Choose an object</a>`}>
    Open an object, and choose Upload to IPFS: everyone who has its CID can then read it.
  <//>`
}

const columns = [
  {
    name: 'File',
    rest: true,
    by: ({ FileName }) => FileName,
    cell: ({ FileName }) => html`<${Middle} text=${FileName ?? ''} />`,
  },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${Known} kind="upload" of=${Status} />` },
  {
    name: 'Size',
    by: ({ FileSize }) => FileSize,
    number: true,
    cell: ({ FileSize }) => html`<${Bytes} of=${FileSize} />`,
  },
  { name: 'Days', by: ({ DurationDays }) => DurationDays, number: true, cell: ({ DurationDays }) => DurationDays },
  { name: 'Deals', number: true, cell: ({ OfflineDeals = [] }) => OfflineDeals.length },
  {
    name: 'Uploaded',
    by: ({ UploadAt }) => UploadAt ?? 0,
    cell: ({ UploadTime }) => html`<${Time} of=${UploadTime} />`,
  },
  { name: 'Content', cell: ({ PayloadCid }) => html`<${Copied} text=${PayloadCid} what="the CID" />` },
]
