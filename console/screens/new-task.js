import { sendJson, sendXml } from '../lib/api.js'
import { withClientToken } from '../lib/client-token.js'
import { formatAmount, parseAmount } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Amount } from '../parts/amount.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Facts } from '../parts/table.js'
import { capFacts, EPOCHS_PER_DAY } from './archive.js'

/** Days for which a provider keeps the files, by the platform. */
const DAYS = { min: 180, max: 540, defaultValue: 525 }

async function listBuckets(client, signal) {
  const answer = await sendXml(client, { path: '/', signal })
  return answer
    .child('Buckets')
    .all('Bucket')
    .map((bucket) => bucket.get('Name'))
}

/** A task for the objects of a bucket: first its terms and what the storage may cost, then the confirmation. */
export function NewTask({ onClose }) {
  const [asked, setAsked] = useState()
  return html`<${Dialog} title="New task" onClose=${onClose}>
    ${asked ? html`<${Confirmed} ...${asked} onClose=${onClose} />` : html`<${Terms} show=${setAsked} onClose=${onClose} />`}
  <//>`
}

function Terms({ show, onClose }) {
  const [how, setHow] = useState('manual')
  const client = session.value
  const buckets = useLoaded((signal) => listBuckets(client, signal), [client])
  const action = async (values, signal) => {
    const text = (name) => values.get(name).trim() || undefined
    const bucket = text('bucket')
    const json = {
      TaskName: text('name'),
      Prefix: values.get('prefix') || undefined,
      MaxPrice: text('price'),
      DurationEpochs: Number(values.get('days')) * EPOCHS_PER_DAY,
      ...(how === 'provider'
        ? { IsPublic: 0, MinerId: text('provider') }
        : { IsPublic: 1, AutoBid: how === 'auto' ? 1 : 0 }),
    }
    // What is not known beforehand does not keep the task from being posted: its caps count.
    const asked = { DurationEpochs: json.DurationEpochs }
    const quote = await sendJson(session.value, { bucket, query: { 'x-deal-quote': '' }, json: asked, signal }).catch(
      (error) => ({ problem: error.message }),
    )
    signal.throwIfAborted()
    show({ bucket, json, quote })
  }
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' }
  return html`<${Form} action=${action} submit="Go on" onCancel=${onClose}>
    <p>The gateway packs the objects of the bucket as they are now, and the task offers them. Nothing is paid before a provider has them.</p>
    <${Field} label="Bucket" input=${{ name: 'bucket', required: true, list: 'task-buckets', ...plain }} />
    <datalist id="task-buckets">${buckets.value?.map((name) => html`<option value=${name} />`)}</datalist>
    <${Field} label="Only below this prefix" hint="Empty: the whole bucket." input=${{ name: 'prefix', ...plain }} />
    <${Field} label="Name of the task" hint="Empty: that of the bucket." input=${{ name: 'name', maxlength: 128, ...plain }} />
    <${Field} label="Fil per GiB and epoch, at most" hint="An epoch has 30 seconds. The screen Providers tells what they ask." input=${{ name: 'price', required: true, inputmode: 'decimal', pattern: '[0-9]+([.][0-9]{1,18})?', defaultValue: '0.0000005', ...plain }} />
    <${Field} label="Days" hint="180 to 540." input=${{ name: 'days', type: 'number', required: true, ...DAYS }} />
    <${Field} label="Who gets it" kind="select" input=${{ value: how, onChange: (event) => setHow(event.target.value) }}>
      <option value="manual">The bid that I accept</option>
      <option value="auto">The best bid, by itself</option>
      <option value="provider">The provider below</option>
    <//>
    ${how === 'provider' && html`<${Field} label="Provider" hint="Such as t01000." input=${{ name: 'provider', required: true, ...plain }} />`}
  <//>`
}

/** What a piece of so many bytes costs at most. */
function costOf({ MaxPrice, DurationEpochs }, bytes) {
  return formatAmount((parseAmount(MaxPrice) * bytes * BigInt(DurationEpochs)) >> 30n)
}

function Confirmed({ bucket, json, quote, onClose }) {
  const action = async (_, signal) => {
    const request = { bucket, query: { 'x-deal-offline': '' }, json }
    const { JobId } = await withClientToken(request, (token) =>
      sendJson(session.value, { ...request, headers: { ...token, prefer: 'wait=0' }, signal }),
    )
    goTo(['jobs', JobId])
  }
  const { PieceSize, Currency, DailyCap, LeftToday, problem } = quote
  const total = PieceSize && costOf(json, BigInt(PieceSize))
  return html`<${Form} action=${action} submit="Post the task" danger onCancel=${onClose}>
    <p>The objects of <strong><${Name} text=${bucket} /></strong> are packed and offered, for at most <strong>${json.MaxPrice} fil per GiB and epoch</strong>. ${json.AutoBid === 0 && 'You choose among the bids later.'} A task that has a provider cannot be undone.</p>
    <${Facts} facts=${[['Costs about, at that price', total && html`<${Amount} of=${total} unit=${Currency} />`], ...(Currency ? capFacts(DailyCap, LeftToday, Currency) : [])]} />
    ${problem && html`<p class="quiet">What it costs cannot be told beforehand: <${Name} text=${problem} /></p>`}
  <//>`
}
