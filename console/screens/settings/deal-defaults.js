import { html } from '../../lib/html.js'
import { Check, Field } from '../../parts/form.js'
import { Single } from './single.js'

/** Members of the terms for every class, in the form. */
const TERMS = ['MinerId', 'Price', 'DurationEpochs']

/** The configuration with the values of the form. */
function changed(before, values) {
  const text = (name) => values.get(name).trim() || undefined
  const number = (name) => (text(name) === undefined ? undefined : Number(text(name)))
  const others = (before.Terms ?? []).filter(({ StorageClass }) => StorageClass !== undefined)
  const general = (before.Terms ?? []).find(({ StorageClass }) => StorageClass === undefined)
  const stated = { MinerId: text('MinerId'), Price: text('Price'), DurationEpochs: number('DurationEpochs') }
  const terms = defined({ ...general, ...stated })
  const all = [...(Object.keys(terms).length > 0 ? [terms] : []), ...others]
  return defined({
    ...before,
    Terms: all.length > 0 ? all : undefined,
    MaxSpendPerDay: text('MaxSpendPerDay'),
    RenewBeforeDays: number('RenewBeforeDays'),
    ReadThrough: values.has('ReadThrough') || undefined,
    PublicNetwork: text('PublicNetwork'),
  })
}

function defined(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function Fields({ value }) {
  const general = (value.Terms ?? []).find(({ StorageClass }) => StorageClass === undefined) ?? {}
  const input = (name, from, more) => ({ name, defaultValue: from[name] ?? '', autocomplete: 'off', ...more })
  const number = { type: 'number', min: 1 }
  const hints = {
    MinerId: 'The storage provider of deals that name none.',
    Price: 'Per epoch, for the whole piece.',
    DurationEpochs: 'A day has 2,880 epochs of 30 seconds.',
  }
  return html`${TERMS.map((name) => html`<${Field} label=${LABELS[name]} hint=${hints[name]} input=${input(name, general, name === 'DurationEpochs' && number)} />`)}
    <${Field} label="Most that deals of this bucket may cost per day" hint="Empty: only the cap of the server counts." input=${input('MaxSpendPerDay', value)} />
    <${Field} label="Renew deals so many days before they end" hint="Empty: they are not renewed. A renewal costs money." input=${input('RenewBeforeDays', value, number)} />
    <${Check} label="Restore what is read: a read of an object that is only in deals starts its restore" input=${{ name: 'ReadThrough', defaultChecked: value.ReadThrough === true }} />
    <${Field} label="Deals of objects that are not encrypted" kind="select" input=${{ name: 'PublicNetwork' }}>${Object.entries(PLAIN).map(([rule, label]) => html`<option value=${rule} selected=${rule === (value.PublicNetwork ?? '')}>${label}</option>`)}<//>`
}

const PLAIN = { '': 'Default: with a warning', warn: 'With a warning', 'encrypted-only': 'Refused', allow: 'Allowed' }

const LABELS = { MinerId: 'Provider', Price: 'Price', DurationEpochs: 'Epochs' }

/** What the deals of a bucket are made on, and may cost. Other parts of the configuration stay as they are. */
export const dealDefaults = {
  name: 'Deal defaults and spending',
  query: 'x-deal-config',
  call: true,
  json: true,
  hint: 'Terms that deals of this bucket are made on where the request states none, and what they may cost. The JSON also has terms by storage class, offline deals and schedules.',
  // Nothing removes it: an empty one says nothing.
  stays: true,
  View: Single,
  Fields,
  change: changed,
}
