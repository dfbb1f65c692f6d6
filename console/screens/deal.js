import { sendJson } from '../lib/api.js'
import { formatTime } from '../lib/format.js'
import { html } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { inPlainWords } from '../lib/words.js'
import { Amount } from '../parts/amount.js'
import { Answer } from '../parts/answer.js'
import { Copied } from '../parts/copy.js'
import { Reached, stateFacts } from '../parts/known.js'
import { useLoaded, usePolling } from '../parts/load.js'
import { Middle, Name } from '../parts/name.js'
import { Crumbs, Folded, Page } from '../parts/page.js'
import { Facts } from '../parts/table.js'
import { Bytes, Time } from '../parts/time.js'
import { Source } from './deals.js'

/** States on the way to a deal that is active; all others stay for long, or for ever. */
const UNDER_WAY = /Waiting|Check|Proposal|Transfer|Publish|Sealing|Precommit|ClientFunding/

/** One deal, with its task and the payments for its object where they exist. */
export function Deal({ params: { cid } }) {
  const client = session.value
  const path = `/-/deal/v1/deals/${uriEncode(cid)}`
  const deal = useLoaded((signal) => sendJson(client, { path, query: { expand: 'task,pay' }, signal }), [client, cid])
  usePolling(UNDER_WAY.test(deal.value?.Status), [deal])
  const heading = deal.value?.Bucket ? html`Deal for <${Name} text=${nameOf(deal.value)} />` : 'Deal'
  return html`<${Crumbs} links=${[{ href: linkTo(['deals']), text: 'Deals' }, { href: linkTo(['deals', cid]), text: html`<span class="cid"><${Middle} text=${cid} /></span>` }]} />
    <${Page} title=${`Deal ${cid}`} heading=${heading} actions=${html`<button type="button" onClick=${deal.reload}>Refresh</button>`}>
      <${Reached} of=${deal} show=${(value) => html`<${Shown} deal=${value} />`} />
    <//>`
}

function nameOf({ Bucket, Key }) {
  return Key === undefined ? Bucket : `${Bucket}/${Key}`
}

/** Members that `facts` shows, in words or as identifiers: each fact stands once on the page. */
const SHOWN = [
  ...['Bucket', 'Key', 'DealCid', 'DataCid', 'PieceCid', 'PieceSize', 'MinerId', 'Price', 'Status', 'StatusMessage'],
  ...['StatusTime', 'CreatedAt', 'EstimatedExpiry', 'StartEpoch', 'EndEpoch', 'DurationEpochs', 'JobId', 'Cause'],
  ...['RetiredAt', 'RenewsDealCid', 'TaskUuid', 'Task', 'Pay'],
]

/** How a deal came to be made, in words. */
const CAUSES = {
  call: 'a request',
  class: 'the storage class of the object',
  lifecycle: 'a lifecycle rule',
  schedule: 'a schedule',
}

function Shown({ deal }) {
  const rest = Object.entries(deal).filter(([name]) => !SHOWN.includes(name))
  const { Task: task, Pay: pay, JobId, TaskUuid } = deal
  return html`<${Facts}
      facts=${[
        ...stateFacts('deal', deal.Status),
        ['Message', deal.StatusMessage && inPlainWords(deal.StatusMessage)],
        ['As of', deal.StatusTime && html`<${Time} of=${deal.StatusTime} exact />`],
        ['Stores', deal.Bucket && html`<${Source} deal=${deal} />`],
        [
          'Provider',
          deal.MinerId &&
            html`<a href=${linkTo(['deals'], { provider: deal.MinerId })}><${Name} text=${deal.MinerId} /></a>`,
        ],
        ['Price', deal.Price && html`<${Amount} of=${deal.Price} unit="fil per epoch" />`],
        ['Made', deal.CreatedAt && html`<${Time} of=${deal.CreatedAt} exact />`],
        ['Made because of', deal.Cause && (CAUSES[deal.Cause] ?? deal.Cause)],
        ['Ends', deal.EstimatedExpiry && formatTime(deal.EstimatedExpiry)],
        ['Replaced', deal.RetiredAt && html`<${Time} of=${deal.RetiredAt} exact />`],
      ]}
    />
    <h2>Identifiers</h2>
    <${Facts}
      facts=${[
        ['Deal CID', html`<${Copied} text=${deal.DealCid} what="the CID of the deal" />`],
        ['Data CID', deal.DataCid && html`<${Copied} text=${deal.DataCid} what="the CID of the data" />`],
        ['Piece CID', deal.PieceCid && html`<${Copied} text=${deal.PieceCid} what="the CID of the piece" />`],
        ['Piece size', deal.PieceSize && html`<${Bytes} of=${deal.PieceSize} />`],
        ['Epochs', deal.StartEpoch && `${deal.StartEpoch} to ${deal.EndEpoch}`],
        ['Job', JobId && html`<a href=${linkTo(['jobs', JobId])} class="cid"><${Middle} text=${JobId} /></a>`],
        [
          'Task',
          TaskUuid && html`<a href=${linkTo(['tasks', TaskUuid])} class="cid"><${Middle} text=${TaskUuid} /></a>`,
        ],
        [
          'Renews',
          deal.RenewsDealCid &&
            html`<a href=${linkTo(['deals', deal.RenewsDealCid])} class="cid"><${Middle} text=${deal.RenewsDealCid} /></a>`,
        ],
      ]}
    />
    ${task && html`<h2>Task</h2><${Answer} value=${task} title="Task" />`}
    ${pay && html`<h2>Payments for the object</h2><${Answer} value=${pay} title="Payments" />`}
    ${rest.length > 0 && html`<${Folded} title="More facts"><${Answer} value=${Object.fromEntries(rest)} title="More facts" /><//>`}`
}
