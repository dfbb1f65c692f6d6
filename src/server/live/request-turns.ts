interface Turn {
  running: number
  /** Set once no more requests join it. */
  onEnd: (() => void) | undefined
  readonly leave: () => void
}

/** Counts requests, so that one can wait for those that are in progress at a moment. */
export class RequestTurns {
  #present = newTurn()
  #earlier: Promise<unknown> = Promise.resolve()

  /** @returns to be called once, when the request has ended */
  enter(): () => void {
    this.#present.running++
    return this.#present.leave
  }

  /** Resolves when the requests have ended that are in progress now. */
  async ended(): Promise<void> {
    const turn = this.#present
    this.#present = newTurn()
    const own = new Promise<void>((resolve) => {
      if (turn.running === 0) resolve()
      else turn.onEnd = resolve
    })
    this.#earlier = Promise.all([this.#earlier, own])
    await this.#earlier
  }
}

function newTurn(): Turn {
  const turn: Turn = {
    running: 0,
    onEnd: undefined,
    leave() {
      turn.running--
      if (turn.running === 0) turn.onEnd?.()
    },
  }
  return turn
}
