import { sendJson } from '../lib/api.js'
import { eachAtOnce, selectedObjects } from '../lib/below.js'
import { formatAmount, formatBytes, formatCount, parseAmount, visibleText } from '../lib/format.js'
import { html, useRef, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { uriEncode } from '../lib/signer.js'
import { Dialog } from '../parts/dialog.js'
import { Field, Form } from '../parts/form.js'
import { Known } from '../parts/known.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Facts, Table } from '../parts/table.js'
import { capFacts, EPOCHS_PER_DAY, orderDeal, quoteOf, TermFields, termsOf } from './archive.js'

/** Requests to the server at the same time. */
const AT_ONCE = 4
/** Objects of one dialog: each has a deal of its own. */
const MOST = 500
/** How long after an answer the jobs are read again, ms. */
const AGAIN_MS = 1000
/** States of a job that pass by themselves. One whose outcome is unknown may wait for a person. */
const PASSING = ['New', 'Active', 'Cancelling']

/** A deal for each of the selected objects: first what they cost together, then one confirmation. */
export function ArchiveObjects({ bucket, items, done, onClose }) {
  const [quoted, setQuoted] = useState()
  return html`<${Dialog} title="Archive objects" onClose=${onClose}>
    ${
      quoted
        ? html`<${Order} bucket=${bucket} ...${quoted} done=${done} onClose=${onClose} />`
        : html`<${Ask} bucket=${bucket} items=${items} show=${setQuoted} onClose=${onClose} />`
    }
  <//>`
}

function Ask({ bucket, items, show, onClose }) {
  const [count, setCount] = useState(0)
  const action = async (values, signal) => {
    const terms = termsOf(values)
    const entries = []
    for await (const page of selectedObjects(session.value, bucket, items, signal)) {
      entries.push(...page.map(({ key }) => ({ key })))
      if (entries.length > MOST)
        throw new Error(`More than ${MOST} objects are selected. One deal can hold a whole bucket: see Calls.`)
    }
    if (entries.length === 0) throw new Error('There is no object below what is selected.')
    await eachAtOnce(entries, AT_ONCE, async (entry) => {
      Object.assign(entry, await quoteFor(bucket, entry.key, terms, signal))
      setCount((number) => number + 1)
    })
    show({ quoted: entries, terms })
  }
  return html`<${Form} action=${action} submit="Get quotes" onCancel=${onClose}>
    <p>A storage provider keeps a copy of each object for the time that you pay for. The quotes cost nothing.</p>
    <${TermFields} />
    ${count > 0 && html`<p role="status">${formatCount(count, 'quote')} received</p>`}
  <//>`
}

/** @returns { quote } or { problem } */
async function quoteFor(bucket, key, terms, signal) {
  try {
    return { quote: await quoteOf(bucket, key, terms, signal) }
  } catch (error) {
    signal.throwIfAborted()
    return { problem: reasonOf(error) }
  }
}

function reasonOf({ message, code }) {
  return code === undefined ? message : `${message} (${code})`
}

/** A quoted object with the deal of one provider, or of the cheapest. */
function withOffer({ key, quote, problem }, provider) {
  if (quote === undefined) return { key, problem }
  const offer = quote.Candidates.find(({ MinerId }) => provider === '' || MinerId === provider)
  if (offer === undefined) return { key, bytes: quote.Bytes, problem: 'The provider would not take it.' }
  return { key, bytes: quote.Bytes, offer, total: parseAmount(offer.Total) }
}

function Provider({ quotes, value, disabled, change }) {
  const known = new Map(quotes.flatMap(({ Candidates }) => Candidates.map((one) => [one.MinerId, one])))
  return html`<${Field} label="Provider" kind="select" input=${{ value, disabled, onChange: (event) => change(event.target.value) }}>
    <option value="">The cheapest for each object</option>
    ${[...known.values()].map(({ MinerId, Score }) => html`<option value=${MinerId}>${visibleText(MinerId)}, score ${Score}</option>`)}
  <//>`
}

/** The confirmation, which stays to show what becomes of each object. What has failed can be requested again. */
function Order({ bucket, quoted, terms, done, onClose }) {
  const [provider, setProvider] = useState('')
  // Of objects by their keys: { job, status, problem }. Each request looks at what the others have done meanwhile.
  const { current: states } = useRef(new Map())
  const [, redraw] = useState(0)
  const set = (key, state) => {
    states.set(key, state)
    redraw((turn) => turn + 1)
  }
  const quotes = quoted.flatMap(({ quote }) => quote ?? [])
  const entries = quoted.map((entry) => withOffer(entry, provider))
  const offered = entries.filter(({ offer }) => offer)
  const open = offered.filter(({ key }) => isOpen(states.get(key)))
  const passing = () => offered.filter(({ key }) => PASSING.includes(states.get(key)?.status))
  const order = async ({ key, offer: { MinerId, Price } }, signal) => {
    try {
      set(key, { job: await orderDeal(bucket, key, { ...terms, MinerId, Price }, signal), status: 'New' })
    } catch (error) {
      signal.throwIfAborted()
      set(key, { problem: reasonOf(error) })
    }
  }
  const follow = async ({ key }, signal) => {
    const { job } = states.get(key)
    const answer = await sendJson(session.value, { path: `/-/jobs/v1/${uriEncode(job)}`, signal })
    const [reason] = answer.FailureReasons ?? []
    const problem = reason && reasonOf({ message: reason.FailureReason, code: reason.FailureCode })
    set(key, { job, status: answer.Status, problem })
  }
  const action = async (_, signal) => {
    await eachAtOnce(open, AT_ONCE, (entry) => order(entry, signal))
    while (passing().length > 0) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      signal.throwIfAborted()
      await eachAtOnce(passing(), AT_ONCE, (entry) => follow(entry, signal))
    }
    const made = offered.filter(({ key }) => states.get(key)?.status === 'Complete').length
    if (made === 0) return
    notify(`${formatCount(made, 'deal')} made.`)
    if (made < entries.length) return
    done()
    onClose()
  }
  const sum = open.reduce((all, { total }) => all + total, 0n)
  const { Currency, DailyCap, LeftToday } = quotes.at(-1) ?? {}
  // What is left was quoted before the first request; the server itself counts what follows.
  const exceeds = states.size === 0 && LeftToday !== undefined && sum > parseAmount(LeftToday)
  const price = `${formatAmount(sum)} ${Currency}`
  const requested = [...states.values()].filter(({ job }) => job).length
  const bytes = offered.reduce((all, entry) => all + entry.bytes, 0)
  return html`<${Form}
    action=${action}
    danger
    disabled=${exceeds || (open.length === 0 && passing().length === 0)}
    submit=${open.length > 0 ? `Pay ${price} for ${formatCount(open.length, 'deal')}` : 'Follow the jobs'}
    onCancel=${onClose}
  >
    <${Provider} quotes=${quotes} value=${provider} disabled=${states.size > 0} change=${setProvider} />
    <${Facts} facts=${[['Objects', offered.length], ['Size', formatBytes(bytes)], ['Price', price], ...capFacts(DailyCap, LeftToday, Currency)]} />
    ${exceeds && html`<p class="problem" role="status">The deals would exceed what may be spent today.</p>`}
    ${entries.length > offered.length && html`<p>${formatCount(entries.length - offered.length, 'object')} of the selection cannot be archived: see below.</p>`}
    <p>Each object gets a deal of its own, for ${terms.DurationEpochs / EPOCHS_PER_DAY} days. Deals cannot be undone, also if you close this dialog after they were requested: their <a href=${linkTo(['jobs'])}>jobs</a> go on.</p>
    <p role="status">${states.size > 0 && `${requested} of ${formatCount(offered.length, 'deal')} requested`}</p>
    <${Table} caption="Objects to be archived" columns=${columns(states)} rows=${entries} keyOf=${({ key }) => key} />
  <//>`
}

/** True if no deal was requested, or its job has failed, which made none. One that was cancelled may have made it. */
function isOpen(state) {
  return state?.job === undefined || state.status === 'Failed'
}

function columns(states) {
  return [
    { name: 'Object', by: ({ key }) => key, cell: ({ key }) => key },
    { name: 'Size', by: ({ bytes = -1 }) => bytes, number: true, cell: ({ bytes }) => formatBytes(bytes) },
    { name: 'Provider', by: ({ offer }) => offer?.MinerId ?? '', cell: ({ offer }) => offer?.MinerId },
    { name: 'Price', by: ({ total = 0n }) => total, number: true, cell: ({ offer }) => offer?.Total },
    { name: 'Deal', cell: (entry) => html`<${Outcome} ...${states.get(entry.key) ?? entry} />` },
  ]
}

function Outcome({ job, status, problem }) {
  return html`${job && html`<a href=${linkTo(['jobs', job])}><${Known} kind="job" of=${status} /></a>`}
    ${problem && html`<p>${!job && 'Failed: '}<${Name} text=${problem} /></p>`}`
}
