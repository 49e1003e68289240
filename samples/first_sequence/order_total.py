"""The smallest useful program: two steps, one after the other."""

from iocflow import ProcessContext, SequenceProcessor


class Order(ProcessContext):
    seed_data: list[float]
    total: float


def add_up(context: Order) -> None:
    context.total = sum(context.seed_data)


def show(context: Order) -> None:
    print(f"{len(context.seed_data)} items, together {context.total:.2f}")


if __name__ == "__main__":
    SequenceProcessor([add_up, show], context=Order, name="order").do_activities([9.9, 12.5]).raise_for_error()
