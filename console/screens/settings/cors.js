import { html } from '../../lib/html.js'
import { Choices, Lines, linesIn, one, Text, textsOf } from './inputs.js'
import { listed, Rules } from './rules.js'

/** Pages of which origins may read the answers of a bucket. */
export const cors = {
  name: 'CORS rules',
  query: 'cors',
  absent: 'NoSuchCORSConfiguration',
  hint: 'Pages of which origins may read the answers of this bucket. The console needs no rule.',
  View: Rules,
  word: 'CORS rule',
  root: 'CORSConfiguration',
  names: ['CORSRule'],
  columns: [listed('Id', 'ID'), listed('Origins', 'AllowedOrigin'), listed('Methods', 'AllowedMethod')],
  Fields: ({ rule }) => html`
    <${Text} label="Id" name="ID" defaultValue=${rule.get('ID')} />
    <${Lines} label="Origins" hint="One a line, such as https://example.com or https://*.example.com." texts=${textsOf(rule, 'AllowedOrigin')} name="AllowedOrigin" required />
    <${Choices} legend="Methods" name="AllowedMethod" known=${['GET', 'HEAD', 'PUT', 'POST', 'DELETE']} chosen=${textsOf(rule, 'AllowedMethod')} />
    <${Lines} label="Headers of requests" hint="One a line, or * for all." texts=${textsOf(rule, 'AllowedHeader')} name="AllowedHeader" />
    <${Lines} label="Headers of answers" hint="One a line, such as ETag. Pages can read these." texts=${textsOf(rule, 'ExposeHeader')} name="ExposeHeader" />
    <${Text} label="Seconds that browsers remember it" name="MaxAgeSeconds" type="number" min="0" defaultValue=${rule.get('MaxAgeSeconds')} />`,
  change(rule, values) {
    for (const name of ['ID', 'MaxAgeSeconds']) rule.replace(name, one(values, name))
    for (const name of ['AllowedOrigin', 'AllowedHeader', 'ExposeHeader']) rule.replace(name, linesIn(values, name))
    rule.replace('AllowedMethod', values.getAll('AllowedMethod'))
  },
}
