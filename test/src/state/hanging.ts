import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * Passes connections on to a server, and can have them hang: what is sent then is kept, and new connections are
 * accepted without an answer.
 */
export interface Hanging {
  /** The URL with the address of this instead of the server's. */
  readonly url: string
  hang(): void
  /** Passes on what was kept, and all else. */
  go(): void
  /** Cuts the connection that next sends this text. */
  cutAt(text: string): void
  /**
   * Keeps what a connection sends from this text on. The returned function passes it on, though its sender has left.
   */
  holdAt(text: string): () => void
  /** Cuts all connections; new ones lead to another server. */
  moveTo(url: string): void
}

export async function startHanging(t: { teardown(run: () => unknown): void }, url: string): Promise<Hanging> {
  let { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let hangs = false
  let cut: string | undefined
  let hold: { readonly text: string; readonly chunks: Buffer[]; far?: Socket } | undefined
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        if (hold?.far === far && socket === near) return
        near.destroy()
        far.destroy()
      })
    }
    near.on('data', (chunk) => {
      if (hold && hold.far === undefined && chunk.includes(hold.text)) hold.far = far
      if (hold?.far === far) {
        hold.chunks.push(chunk)
        return
      }
      if (cut !== undefined && chunk.includes(cut)) {
        cut = undefined
        near.destroy()
      } else far.write(chunk)
    })
    far.on('data', (chunk) => near.write(chunk))
    if (hangs) for (const socket of [near, far]) socket.pause()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const changed = new URL(url)
  changed.port = String((server.address() as AddressInfo).port)
  return {
    url: changed.toString(),
    hang() {
      hangs = true
      for (const socket of sockets) socket.pause()
    },
    cutAt(text) {
      cut = text
    },
    holdAt(text) {
      const held: NonNullable<typeof hold> = { text, chunks: [] }
      hold = held
      return () => {
        hold = undefined
        for (const chunk of held.chunks) held.far?.write(chunk)
      }
    },
    moveTo(other) {
      ;({ hostname, port } = new URL(other))
      for (const socket of sockets) socket.destroy()
    },
    go() {
      hangs = false
      for (const socket of sockets) socket.resume()
    },
  }
}
