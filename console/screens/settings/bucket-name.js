import { html } from '../../lib/html.js'
import { Field } from '../../parts/form.js'

/** What a name of a bucket must have, in words, with what tells. */
const RULES = [
  ['3 to 63 characters', (name) => name.length >= 3 && name.length <= 63],
  ['only lower-case letters, digits, dots and hyphens', (name) => /^[a-z0-9.-]*$/.test(name)],
  ['a letter or digit at both ends', (name) => /^[a-z0-9].*[a-z0-9]$|^[a-z0-9]?$/.test(name)],
  ['no dot beside another dot or a hyphen', (name) => !/\.\.|\.-|-\./.test(name)],
  ['not the form of an IP address', (name) => !/^\d+\.\d+\.\d+\.\d+$/.test(name)],
  ['no beginning that S3 reserves', (name) => !/^(xn--|sthree-|amzn-s3-demo-)/.test(name)],
  ['no end that S3 reserves', (name) => !/(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$/.test(name)],
]

/** The rules that a name breaks, in words. */
export function brokenRules(name) {
  return RULES.filter(([, holds]) => !holds(name)).map(([words]) => words)
}

/** The name of a new bucket, with what it lacks while it is typed. */
export function BucketName({ name, setName }) {
  const broken = brokenRules(name)
  const begun = name !== ''
  const hint = !begun
    ? '3 to 63 lower-case letters, digits, dots and hyphens. It cannot be changed later.'
    : broken.length === 0
      ? 'This name can be used, if nobody has it yet.'
      : `A name needs: ${broken.join('; ')}.`
  const input = {
    name: 'name',
    required: true,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    value: name,
    'aria-invalid': begun && broken.length > 0 ? 'true' : undefined,
    onInput: (event) => setName(event.target.value),
  }
  return html`<div aria-live="polite"><${Field} label="Name" hint=${hint} input=${input} /></div>`
}
