/** Most values at a time that have different slots. */
const MAX_VALUES = 2 ** 20
/** After so many ids they begin again, so that each is an integer that a number holds exactly. */
const MAX_GIVEN = 2 ** 32

/**
 * What is under way, by the ids that `Running` of its client has given, in slots that are used again. A Map or Set
 * makes a new table as often as it has had some dozens of values, and each table keeps what it held until V8 collects
 * the whole heap: most requests would become old, and the heap would grow by all of them.
 */
export class RunningById<T> {
  readonly #slots: ({ readonly id: number; readonly value: T } | undefined)[] = []

  add(id: number, value: T): void {
    this.#slots[id % MAX_VALUES] = { id, value }
  }

  find(id: number): T | undefined {
    const running = this.#slots[id % MAX_VALUES]
    return running?.id === id ? running.value : undefined
  }

  /** False for an id that is not under way. */
  remove(id: number): boolean {
    const slot = id % MAX_VALUES
    if (this.#slots[slot]?.id !== id) return false
    this.#slots[slot] = undefined
    return true
  }

  /** In no order. */
  all(): T[] {
    return this.#slots.flatMap((running) => (running === undefined ? [] : [running.value]))
  }
}

/** What is under way, by ids of its own: see `RunningById`. */
export class Running<T> {
  readonly #byId = new RunningById<T>()
  readonly #free: number[] = []
  #slots = 0
  #given = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Returns an id that no other value has, and that none had for billions of values. */
  add(value: T): number {
    const id = this.newId()
    this.put(id, value)
    return id
  }

  /** An id for one `put`, which others need before there is a value. */
  newId(): number {
    this.#given = (this.#given + 1) % MAX_GIVEN
    return this.#given * MAX_VALUES + (this.#free.pop() ?? this.#slots++)
  }

  put(id: number, value: T): void {
    this.#byId.add(id, value)
    this.#size++
  }

  find(id: number): T | undefined {
    return this.#byId.find(id)
  }

  /** False for an id that is not under way. */
  remove(id: number): boolean {
    if (!this.#byId.remove(id)) return false
    this.#free.push(id % MAX_VALUES)
    this.#size--
    return true
  }

  /** In no order. */
  all(): T[] {
    return this.#byId.all()
  }
}
