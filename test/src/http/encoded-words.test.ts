import t from 'tap'
import { encodeWord, mailSafe } from '../../../src/http/encoded-words.js'
import { utf8Bytes } from '../../../src/http/header-text.js'

t.test('user metadata is mail-safe, and says what was stored', async (t) => {
  for (const [stored, shown] of [
    ['plain = ASCII_text?', 'plain = ASCII_text?'],
    ['', ''],
    ['tab\tand space ', 'tab\tand space '],
    [utf8Bytes('naïve'), '=?UTF-8?Q?na=C3=AFve?='],
    ['na\u00efve', '=?UTF-8?Q?na=C3=AFve?='],
    [utf8Bytes('a_b=c? 語'), '=?UTF-8?Q?a=5Fb=3Dc=3F_=E8=AA=9E?='],
    [utf8Bytes('😀'), '=?UTF-8?Q?=F0=9F=98=80?='],
    // The example of the documentation of S3, which holds characters that cannot be printed.
    [utf8Bytes('Ã\u0084MÃ\u0084ZÃ\u0095Ã\u0091 S3'), '=?UTF-8?B?w4PChE3Dg8KEWsODwpXDg8KRIFMz?='],
    ['=?UTF-8?B?w4PChE3Dg8KEWsODwpXDg8KRIFMz?=', '=?UTF-8?B?w4PChE3Dg8KEWsODwpXDg8KRIFMz?='],
    // Encoded words are decoded, in each of their forms.
    ['=?UTF-8?B?bmHDr3Zl?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['=?utf-8?b?bmHDr3Zl?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['=?UTF-8?q?na=c3=afve?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['=?ISO-8859-1?Q?na=EFve?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['=?UTF-8*fr?Q?na=C3=AFve?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['=?UTF-8?Q?na=C3?= =?UTF-8?Q?=AFve?=', '=?UTF-8?Q?na=C3=AFve?='],
    ['a =?UTF-8?Q?=C3=AF?= b', '=?UTF-8?Q?a_=C3=AF_b?='],
    ['=?UTF-8?Q?hello?=', 'hello'],
    ['=?UTF-8?Q?hello?= =?UTF-8?Q?_you?=', 'hello you'],
    // What ends the line never leaves its word, and a text that looks like a word is not taken for one.
    ['=?UTF-8?Q?a=0D=0Ab?=', '=?UTF-8?B?YQ0KYg==?='],
    ['=?UTF-8?Q?=3D=3FUTF-8=3FQ=3FA=3F=3D?=', '=?UTF-8?Q?=3D=3FUTF-8=3FQ=3FA=3F=3D?='],
    // What is no word, or cannot be decoded, stays.
    ...['=?none?Q?a?=', '=?UTF-8?B?!!!?=', '=?UTF-8?Q?a=C3?=', '=?UTF-8?Q?a=4?=', '=?UTF-8?X?a?=', 'a=?b'].map(
      (text) => [text, text] as const,
    ),
  ] as const) {
    t.equal(mailSafe(stored), shown, JSON.stringify(stored))
    t.equal(mailSafe(shown), shown, 'a copy of it shows the same')
  }
})

t.test('any text comes back from its word', async (t) => {
  for (let first = 0; first < 0x3000; first += 0x40) {
    const text = String.fromCodePoint(...Array.from({ length: 0x40 }, (_, i) => first + i))
    const word = encodeWord(text)
    t.match(word, /^=\?UTF-8\?[QB]\?[!->@-~]*\?=$/)
    t.equal(mailSafe(word), /^[\x20-\x7e]*$/.test(text) ? text : word)
  }
})
