import { createServer, type Server } from 'node:net'
import type { Test } from 'tap'

/** A mail server that takes every mail, or answers with `refusal`. Ends with the test. */
export async function mailServer(
  t: Test,
  refusal?: string,
): Promise<{ url: string; mails: string[]; greeted: () => number }> {
  const mails: string[] = []
  let greeted = 0
  const server: Server = createServer((socket) => {
    greeted++
    let data = ''
    let inMail = false
    socket.on('error', () => {})
    socket.write(refusal === undefined ? '220 mail ready\r\n' : `${refusal}\r\n`)
    socket.on('data', (chunk) => {
      data += chunk
      for (;;) {
        const end = data.indexOf(inMail ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const line = data.slice(0, end)
        data = data.slice(end + (inMail ? 5 : 2))
        if (inMail) {
          mails.push(`${line}\r\n`)
          inMail = false
          socket.write('250 taken\r\n')
        } else if (/^DATA/i.test(line)) {
          inMail = true
          socket.write('354 go on\r\n')
        } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n')
        else if (/^EHLO/i.test(line)) socket.write('250-mail\r\n250 AUTH PLAIN\r\n')
        else if (/^AUTH/i.test(line)) socket.write('235 welcome\r\n')
        else socket.write('250 fine\r\n')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: `smtp://127.0.0.1:${port}`, mails, greeted: () => greeted }
}
