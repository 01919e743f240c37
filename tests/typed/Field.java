/* Field.java - as field.py, with Swing: java Field.java FOLDER */
import java.awt.Font;
import java.awt.event.MouseAdapter;
import java.awt.event.MouseEvent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import javax.swing.JDialog;
import javax.swing.JFrame;
import javax.swing.JTextField;
import javax.swing.SwingUtilities;
import javax.swing.Timer;
import javax.swing.event.DocumentEvent;
import javax.swing.event.DocumentListener;

public class Field {
    static Path folder;
    static boolean dialogWanted;

    /* The next press in the field opens it after "dialog" was read. */
    static void openDialog(JFrame frame) {
        if (!dialogWanted)
            return;
        dialogWanted = false;
        write("dialog", "");
        JDialog dialog = new JDialog(frame, "dialog", false);
        JTextField inside = new JTextField(30);
        report(inside, "dialog");
        dialog.add(inside);
        dialog.setSize(400, 100);
        dialog.setVisible(true);
        inside.requestFocusInWindow();
    }

    static void report(JTextField field, String name) {
        field.getDocument().addDocumentListener(new DocumentListener() {
            public void insertUpdate(DocumentEvent e) { write(name, field.getText()); }
            public void removeUpdate(DocumentEvent e) { write(name, field.getText()); }
            public void changedUpdate(DocumentEvent e) { }
        });
    }

    static void write(String name, String text) {
        try {
            Path next = folder.resolve(name + ".new");
            Files.writeString(next, text);
            Files.move(next, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            System.err.println(e);
        }
    }

    static void command(JTextField field) {
        try {
            Path path = folder.resolve("do");
            if (!Files.exists(path))
                return;
            String[] words = Files.readString(path).trim().split(" ");
            Files.delete(path);
            if (words[0].equals("dialog"))
                dialogWanted = true;
            else if (words[0].equals("clear"))
                field.setText("");
            else if (words[0].equals("stall"))
                Thread.sleep(Integer.parseInt(words[1]));
        } catch (IOException | InterruptedException e) {
            System.err.println(e);
        }
    }

    static void show() {
        JFrame frame = new JFrame("typing");
        JTextField field = new JTextField(40);
        field.setFont(new Font(Font.DIALOG, Font.PLAIN, 14));
        report(field, "text");
        field.addMouseListener(new MouseAdapter() {
            public void mouseReleased(MouseEvent e) { openDialog(frame); }
        });
        frame.add(field);
        frame.setSize(600, 80);
        frame.setVisible(true);
        field.requestFocusInWindow();
        new Timer(20, e -> command(field)).start();
        Timer ready = new Timer(500, e -> write("ready", ""));
        ready.setRepeats(false);
        ready.start();
    }

    public static void main(String[] args) {
        folder = Path.of(args[0]);
        SwingUtilities.invokeLater(Field::show);
    }
}
