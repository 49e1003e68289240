"""`SmtpSender` against real servers, and against one that breaks off at the worst moment."""

from __future__ import annotations

import email
import email.policy
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from iocflow.activities import (
    Delivery,
    DeliveryError,
    Draft,
    HeaderError,
    Letter,
    MailTimeoutError,
    Recipient,
    Sender,
    SmtpConnectionError,
    SmtpLoginError,
    SmtpSender,
    SmtpTemporaryError,
    SmtpTlsError,
)

Start = Callable[..., Any]


def letters(*addresses: str, **draft: Any) -> list[Letter]:
    """Return a letter to each address."""
    made = Draft(Recipient("fares@example.com"), "News", "Grüße\n.\nfrom us", **draft)
    return [made.letter_to(Recipient(address, "Müller, Jörg"), "run-1") for address in addresses]


def forever() -> None:
    """Say that there is no time limit."""
    return


def sent(sender: SmtpSender, mail: Sequence[Letter], remaining: Callable[[], float | None] = forever) -> list[str]:
    """Return the outcomes of the letters, each with what the server said."""
    return [told(delivery) for delivery in sender.send(mail, remaining=remaining)]


def told(delivery: Delivery) -> str:
    return f"{delivery.address} {delivery.outcome.value} {delivery.detail}".rstrip()


def test_a_letter_arrives_as_it_was_written(mail_server: Start) -> None:
    """Names, subject and text come out at the other end as they went in, for the one recipient alone."""
    server = mail_server()
    sender = SmtpSender("127.0.0.1", server.port)
    assert isinstance(sender, Sender)
    assert sent(sender, letters("x@example.com", html="<p>Grüße</p>")) == ["x@example.com sent"]
    [(recipients, raw)] = server.mail
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert recipients == ["x@example.com"]
    assert message["To"].addresses[0].display_name == "Müller, Jörg"
    [text, html] = message.iter_parts()
    assert text.get_content().splitlines() == ["Grüße", ".", "from us"]
    assert html.get_content().strip() == "<p>Grüße</p>"


def test_all_letters_of_a_step_share_a_connection(mail_server: Start) -> None:
    """Many letters go over one connection, which is closed in the end; the next step opens its own."""
    server = mail_server()
    sender = SmtpSender("127.0.0.1", server.port)
    addresses = [f"x{number}@example.com" for number in range(50)]
    assert sent(sender, letters(*addresses)) == [f"{address} sent" for address in addresses]
    assert (server.sessions, server.addresses()) == (1, addresses)
    sent(sender, letters("y@example.com"))
    assert server.sessions == 2
    assert sent(sender, []) == []


def test_a_bcc_header_is_never_sent(mail_server: Start) -> None:
    """A Bcc that somebody puts into a letter's message reaches neither the wire nor another recipient."""
    server = mail_server()
    [letter] = letters("x@example.com")
    letter.message["Bcc"] = "hidden@example.com"
    sent(SmtpSender("127.0.0.1", server.port), [letter])
    [(recipients, raw)] = server.mail
    assert recipients == ["x@example.com"]
    assert b"hidden" not in raw


def test_headers_of_the_sender_go_into_every_message(mail_server: Start) -> None:
    """Configured headers stand in each message once for each value, also when a letter is sent again."""
    server = mail_server()
    sender = SmtpSender("127.0.0.1", server.port, headers={"X-Route": ["BWI", "LGA"]})
    mail = letters("x@example.com")
    for _ in range(2):
        sent(sender, mail)
    for _, raw in server.mail:
        assert email.message_from_bytes(raw).get_all("X-Route") == ["BWI", "LGA"]
    with pytest.raises(HeaderError):
        SmtpSender("127.0.0.1", 25, headers={"X-Route": "BWI\r\nBcc: x@example.com"})


def test_letters_of_other_scripts_need_smtputf8(mail_server: Start) -> None:
    """An address outside ASCII goes to a server that offers SMTPUTF8; without that this recipient alone is refused."""
    addresses = ["jörg@müller.example", "x@müller.example", "用户@例え.example"]
    knows, lacks = mail_server(), mail_server(enable_SMTPUTF8=False)
    assert [line.split()[1] for line in sent(SmtpSender("127.0.0.1", knows.port), letters(*addresses))] == ["sent"] * 3
    assert knows.addresses() == ["jörg@xn--mller-kva.example", "x@xn--mller-kva.example", "用户@xn--r8jz45g.example"]
    assert "To: " in knows.mail[0][1].decode()
    assert sent(SmtpSender("127.0.0.1", lacks.port), letters(*addresses)) == [
        "jörg@xn--mller-kva.example refused the address needs SMTPUTF8, which the server does not offer",
        "x@xn--mller-kva.example sent",
        "用户@xn--r8jz45g.example refused the address needs SMTPUTF8, which the server does not offer",
    ]


def test_each_recipient_has_an_outcome_of_their_own(mail_server: Start) -> None:
    """A 4xx defers and a 5xx refuses that recipient alone; the others get their mail."""
    server = mail_server()
    server.replies["later@example.com"] = ["450 4.2.1 mailbox\tbusy"]
    server.replies["never@example.com"] = ["550 5.1.1 no such user"]
    mail = letters("a@example.com", "later@example.com", "never@example.com", "b@example.com")
    assert sent(SmtpSender("127.0.0.1", server.port), mail) == [
        "a@example.com sent",
        "later@example.com deferred 450 4.2.1 mailbox busy",
        "never@example.com refused 550 5.1.1 no such user",
        "b@example.com sent",
    ]


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ({"MAIL": ["451 not now"]}, "deferred 451 not now"),
        ({"MAIL": ["550 not you"]}, "refused 550 not you"),
        ({"DATA": ["452 full"]}, "deferred 452 full"),
        ({"DATA": ["554 no"]}, "refused 554 no"),
        ({"TEXT": ["451 greylisted"]}, "deferred 451 greylisted"),
        ({"TEXT": ["552 too big"]}, "refused 552 too big"),
        ({"TEXT": ["421 going down"]}, "deferred 421 going down"),
        ({"TEXT": ["DROP"]}, "uncertain no reply to the text: Connection unexpectedly closed"),
        ({"TEXT": ["hm, what?"]}, "uncertain no reply to the text: the reply was no SMTP: -1 what?"),
        ({"TEXT": ["250" + "x" * 10000]}, "uncertain no reply to the text: the reply was no SMTP: 500 Line too long."),
    ],
    ids=str,
)
def test_what_each_reply_means(rude_server: Start, script: dict[str, list[str]], outcome: str) -> None:
    """A refusal is told by its class, only silence after the text is uncertain, and the rest goes out."""
    server = rude_server(**script)
    lines = sent(SmtpSender("127.0.0.1", server.port), letters("a@example.com", "b@example.com"))
    assert lines == [f"a@example.com {outcome}", "b@example.com sent"]


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("how", ["DROP", "421 too many mails", "gibberish"])
def test_a_connection_closed_between_letters_is_opened_again(rude_server: Start, command: str, how: str) -> None:
    """A later letter whose text was not handed over when the server closed goes out once, on a new connection."""
    usual = {"MAIL": "250 OK", "RCPT": "250 OK", "DATA": "354 go on"}[command]
    server = rude_server(**{command: [usual, how]})
    mail = letters("a@example.com", "b@example.com", "c@example.com")
    assert [line.split()[1] for line in sent(SmtpSender("127.0.0.1", server.port), mail)] == ["sent"] * 3
    assert (server.connections, len(server.texts)) == (2, 3)


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("how", ["DROP", "421 closing"])
def test_a_server_that_hangs_up_at_once_can_be_retried(rude_server: Start, command: str, how: str) -> None:
    """Hanging up before the text of a connection's first letter is temporary, and nothing was sent."""
    server = rude_server(**{command: [how]})
    sender = SmtpSender("127.0.0.1", server.port)
    with pytest.raises(SmtpConnectionError, match="hung up") as raised:
        sent(sender, letters("a@example.com"))
    assert isinstance(raised.value, ConnectionError | SmtpTemporaryError)
    assert server.texts == []
    assert sent(sender, letters("a@example.com")) == ["a@example.com sent"]


def test_nobody_listens() -> None:
    """A server that is not there is a ConnectionError that names it."""
    with pytest.raises(ConnectionError, match=r"cannot reach the mail server 127\.0\.0\.1:1: .*refused"):
        sent(SmtpSender("127.0.0.1", 1), letters("a@example.com"))


@pytest.mark.parametrize(
    ("greeting", "error", "said"),
    [
        ("421 busy", SmtpConnectionError, "421 busy"),
        ("554 go away", DeliveryError, "turned the connection away: 554 go away"),
        ("DROP", SmtpConnectionError, "cannot reach"),
        ("HTTP/1.1 400 Bad Request", SmtpConnectionError, "Bad Request"),
    ],
)
def test_greetings(rude_server: Start, greeting: str, error: type[Exception], said: str) -> None:
    """A greeting of 5xx is final, anything else that is no welcome can be retried."""
    server = rude_server(GREETING=[greeting])
    with pytest.raises(error, match=said) as raised:
        sent(SmtpSender("127.0.0.1", server.port), letters("a@example.com"))
    assert type(raised.value) is error


@pytest.mark.parametrize("at", ["GREETING", "EHLO", "MAIL", "RCPT", "DATA"])
def test_silence_before_the_text_ends_with_the_time_out(rude_server: Start, at: str) -> None:
    """A server that says nothing any more is given up after the time-out; the letter was not sent."""
    server = rude_server(**{at: ["HANG"]})
    began = time.monotonic()
    with pytest.raises(SmtpConnectionError, match="timed out"):
        sent(SmtpSender("127.0.0.1", server.port, timeout=0.2), letters("a@example.com"))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("tls", ["off", "implicit"])
@pytest.mark.parametrize("reply", ["DRIP", "LINES", "FLOOD"])
@pytest.mark.parametrize("at", ["GREETING", "EHLO", "MAIL", "RCPT", "DATA"])
def test_a_reply_without_an_end_is_given_up(
    rude_server: Start, certificate: str, at: str, reply: str, tls: Any
) -> None:
    """A server that drips its reply, or never ends it, is given up: time-out and size are for the whole."""
    server = rude_server(implicit_tls=tls == "implicit", **{at: [reply]})
    sender = SmtpSender("localhost", server.port, tls, timeout=30 if reply == "FLOOD" else 0.3, ca_file=certificate)
    began = time.monotonic()
    said = r"its reply goes on after \d{2},\d{3} bytes" if reply == "FLOOD" else "timed out"
    with pytest.raises(SmtpConnectionError, match=said):
        sent(sender, letters("a@example.com"))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("at", ["GREETING", "EHLO", "MAIL", "DATA"])
def test_the_steps_time_limit_ends_a_reply_that_drips(rude_server: Start, at: str) -> None:
    """What is left of the step's time limit is for the whole reply, too."""
    server = rude_server(**{at: ["DRIP"]})
    end = time.monotonic() + 0.3
    with pytest.raises(SmtpConnectionError, match="timed out"):
        sent(SmtpSender("127.0.0.1", server.port), letters("a@example.com"), lambda: max(end - time.monotonic(), 0.0))
    assert time.monotonic() - end < 2


@pytest.mark.parametrize("at", ["TEXT", "QUIT"])
def test_a_reply_that_drips_at_the_end(rude_server: Start, at: str) -> None:
    """After the text, a reply that is never complete leaves the outcome uncertain; at QUIT it changes nothing."""
    server = rude_server(**{at: ["DRIP"]})
    began = time.monotonic()
    [outcome] = sent(SmtpSender("127.0.0.1", server.port, timeout=0.3), letters("a@example.com"))
    assert outcome.split()[1] == {"TEXT": "uncertain", "QUIT": "sent"}[at]
    assert time.monotonic() - began < 2


def test_silence_after_the_text_is_uncertain(rude_server: Start) -> None:
    """When the reply to the text does not come in time, nobody knows: the outcome is uncertain, and no error."""
    server = rude_server(TEXT=["HANG"])
    assert sent(SmtpSender("127.0.0.1", server.port, timeout=0.2), letters("a@example.com")) == [
        "a@example.com uncertain no reply to the text: Connection unexpectedly closed: timed out"
    ]


def test_the_steps_time_limit_bounds_every_wait(rude_server: Start) -> None:
    """What is left of the step's time limit shortens the time-out, and ends the step between two letters."""
    began = time.monotonic()
    silent, server = rude_server(MAIL=["HANG"]), rude_server()
    with pytest.raises(SmtpConnectionError, match="timed out"):
        sent(SmtpSender("127.0.0.1", silent.port), letters("a@example.com"), lambda: 0.2)
    assert time.monotonic() - began < 2
    left = iter([5.0] * 20)
    with pytest.raises(MailTimeoutError, match="time limit ended before all mail was sent"):
        sent(SmtpSender("127.0.0.1", server.port), letters(*["a@example.com"] * 20), lambda: next(left, 0.0))
    assert 0 < len(server.texts) < 20


def test_starttls_is_verified(mail_server: Start, certificate: str) -> None:
    """With an authority that is trusted the mail goes out encrypted; with the system's, the certificate is refused."""
    server = mail_server(starttls=True, require_starttls=True)
    for tls in ("starttls", "if-offered"):
        assert sent(SmtpSender("localhost", server.port, tls, ca_file=certificate), letters("a@example.com")) == [
            "a@example.com sent"
        ]
        with pytest.raises(SmtpTlsError, match="certificate verify failed"):
            sent(SmtpSender("localhost", server.port, tls), letters("a@example.com"))  # type: ignore[arg-type]
    assert len(server.mail) == 2


def test_the_certificate_must_name_the_host(mail_server: Start, certificate: str) -> None:
    """A trusted certificate for another name is refused."""
    server = mail_server(starttls=True)
    with pytest.raises(SmtpTlsError, match=r"not valid for '127\.1'"):
        sent(SmtpSender("127.1", server.port, "starttls", ca_file=certificate), letters("a@example.com"))


def test_tls_from_the_first_byte(mail_server: Start, rude_server: Start, certificate: str) -> None:
    """`implicit` speaks TLS at once, verified; a server that does not is an error, no reason to go on in the clear."""
    server = mail_server(implicit_tls=True)
    mail = letters("a@example.com")
    assert sent(SmtpSender("localhost", server.port, "implicit", ca_file=certificate), mail) == ["a@example.com sent"]
    with pytest.raises(SmtpTlsError, match="certificate verify failed"):
        sent(SmtpSender("localhost", server.port, "implicit"), mail)
    with pytest.raises(SmtpTlsError, match="cannot be encrypted"):
        sent(SmtpSender("localhost", rude_server().port, "implicit"), mail)


@pytest.mark.parametrize("options", [{"tls": "starttls"}, {"user": "fares", "password": "s3cret"}])
def test_never_in_the_clear_by_accident(rude_server: Start, options: dict[str, Any]) -> None:
    """A server without STARTTLS gets neither mail nor password when encryption is demanded or there is a login."""
    server = rude_server()
    with pytest.raises(SmtpTlsError, match="offers no STARTTLS"):
        sent(SmtpSender("127.0.0.1", server.port, **options), letters("a@example.com"))
    assert server.texts == []


def test_login(mail_server: Start, certificate: str) -> None:
    """The right password lets the mail out; a wrong one, or a server without login, is final and shows no password."""
    server, open_house = mail_server(starttls=True, auth=True), mail_server(starttls=True)
    mail = letters("a@example.com")

    def sender(port: int, password: str) -> SmtpSender:
        return SmtpSender("localhost", port, "starttls", "fares", password, ca_file=certificate)

    assert sent(sender(server.port, "s3cret"), mail) == ["a@example.com sent"]
    with pytest.raises(SmtpLoginError, match=r"refused the user and password: 535") as refused:
        sent(sender(server.port, "wr0ng-one"), mail)
    assert "wr0ng-one" not in str(refused.value)
    with pytest.raises(SmtpLoginError, match=r"offers no login|refused the user"):
        sent(sender(open_house.port, "s3cret"), mail)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": ""}, "a server has a name"),
        ({"port": 0}, "write 1 to 65535"),
        ({"port": 65536}, "write 1 to 65535"),
        ({"timeout": 0}, "timeout: write more than 0 seconds"),
        ({"timeout": -1}, "timeout: write more than 0 seconds"),
        ({"password": "x"}, "user: a login needs"),
        ({"user": "x"}, "password: a login needs"),
        ({"user": "x", "password": "y", "tls": "off"}, "never sent unencrypted"),
        ({"ca_file": "none.pem"}, "ca_file: none.pem holds no certificates that can be read: No such file"),
        ({"user": "x", "password": "ü"}, "password: smtplib can"),
    ],
)
def test_settings_that_contradict_each_other(options: dict[str, Any], said: str) -> None:
    """What can never work is refused when it is wired."""
    with pytest.raises(ValueError, match=said):
        SmtpSender(**{"host": "mail.example.com", **options})


def test_ports_follow_from_the_kind_of_encryption() -> None:
    """Without a port, the usual one of the kind of encryption is taken."""
    assert [SmtpSender("h", tls=tls).server.port for tls in ("starttls", "implicit", "if-offered", "off")] == [
        587,
        465,
        25,
        25,
    ]


def test_replies_are_shown_on_one_short_line(rude_server: Start, caplog: pytest.LogCaptureFixture) -> None:
    """What a server says cannot forge a line of the log, however long it is."""
    caplog.set_level(logging.DEBUG)
    server = rude_server(RCPT=["550-one\r\n550-\x1b[31mtwo\r\n550 " + "three " * 200])
    [line] = sent(SmtpSender("127.0.0.1", server.port), letters("a@example.com"))
    assert line.startswith("a@example.com refused 550 one [31mtwo three")
    assert line.isprintable()
    assert len(line) < 350
