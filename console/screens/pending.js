import { send, sendXml } from '../lib/api.js'
import { visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Crumbs, Page } from '../parts/page.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/time.js'
import { BucketTabs, pathTo } from './bucket-tabs.js'

/** The uploads in parts that the server has of a bucket, of all programs, to be ended. */
export function Pending({ params: { bucket } }) {
  const client = session.value
  const pending = useLoaded((signal) => listUploads(client, bucket, signal), [client, bucket])
  const [chosen, setChosen] = useState()
  const abort = async () => {
    const { key, uploadId } = chosen
    await send(client, { method: 'DELETE', bucket, key, query: { uploadId } })
    notify('The upload was ended, and its parts were removed.')
    pending.reload()
  }
  return html`<${Crumbs} links=${pathTo(bucket, '')} />
    <${Page} title=${`Uploads in progress in ${visibleText(bucket)}`}>
      <${BucketTabs} bucket=${bucket} />
      <p class="quiet">Uploads in parts that were begun and not completed, of all programs. Their parts take space until then.</p>
      <${Loaded}
        of=${pending}
        show=${({
          rows,
          truncated,
        }) => html`<${Table} caption="Uploads in progress" columns=${columns(setChosen)} rows=${rows} keyOf=${({ uploadId }) => uploadId} empty=${html`<${Empty} title="There is none.">Every upload in parts to this bucket was completed or ended.<//>`} />
          ${truncated && html`<p class="quiet">There are more: these are the first 1000.</p>`}`}
      />
      ${
        chosen &&
        html`<${Confirm} title="End upload" submit="End upload" action=${abort} onClose=${() => setChosen(undefined)}>
          <p>The parts of <strong><${Name} text=${chosen.key} /></strong> are removed, and its program has to begin anew. An object of this name stays as it is.</p>
        <//>`
      }
    <//>`
}

async function listUploads(client, bucket, signal) {
  const query = { uploads: '', 'encoding-type': 'url' }
  const root = await sendXml(client, { bucket, query, signal })
  const rows = root.all('Upload').map((upload) => ({
    key: decodeURIComponent(upload.get('Key').replaceAll('+', ' ')),
    uploadId: upload.get('UploadId'),
    begun: Date.parse(upload.get('Initiated')),
  }))
  return { rows, truncated: root.get('IsTruncated') === 'true' }
}

function columns(onEnd) {
  return [
    { name: 'Key', rest: true, by: ({ key }) => key, cell: ({ key }) => html`<${Middle} text=${key} />` },
    { name: 'Begun', by: ({ begun }) => begun, cell: ({ begun }) => html`<${Time} of=${begun} />` },
    {
      name: 'Actions',
      cell: (row) =>
        html`<button type="button" class="danger" aria-label=${`End the upload of ${visibleText(row.key)}`} onClick=${() => onEnd(row)}>End</button>`,
    },
  ]
}
